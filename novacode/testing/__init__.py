"""For projects that build on NovaCode: a pytest plugin, and the doubles it hands out."""
