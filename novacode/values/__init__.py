"""The nouns of NovaCode: frozen attrs classes, no behaviour beyond reading themselves, no I/O."""
