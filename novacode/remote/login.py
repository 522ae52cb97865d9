"""The page that is shown to who is not let in yet: it takes the token from its own address, or from a field.

It is the body of a 401, in one piece, since nothing else is served to a stranger. Its script and its style are allowed
by their digests; nothing in it comes from a request.
"""

from __future__ import annotations

import base64
import hashlib

__all__ = ["LOGIN_PAGE", "LOGIN_POLICY"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto 0; padding: 0 1rem; }
input, button { font: inherit; padding: .5rem; box-sizing: border-box; }
input { width: 100%; margin: .3rem 0 .8rem; }
"""

_SCRIPT = """
'use strict';
const said = document.getElementById('said');
async function enter(token) {
  let status = 0;
  try {
    const answer = await fetch('/login', { method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: token }), credentials: 'same-origin', cache: 'no-store' });
    status = answer.status;
  } catch (error) { status = 0; }
  if (status === 204) { location.replace('/'); return; }
  said.textContent = status === 0 ? 'The server does not answer.'
    : status === 429 ? 'Too many wrong tokens; wait a minute.' : 'This is not the token of this server.';
}
const given = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
history.replaceState(null, '', '/');
if (given) { enter(given[1]); }
document.getElementById('form').addEventListener('submit', function (event) {
  event.preventDefault();
  const field = document.getElementById('token');
  const found = /([A-Za-z0-9_-]+)\\s*$/.exec(field.value);
  field.value = '';
  if (found) { enter(found[1]); }
});
window.addEventListener('hashchange', function () { location.reload(); });
"""


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


LOGIN_PAGE = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>NovaCode</title>
<style>{_STYLE}</style>
<h1>NovaCode</h1>
<p>Open the address that <code>novacode serve</code> has printed, or enter the token that is in it.</p>
<form id="form">
<label for="token">Token</label>
<input id="token" type="password" autocomplete="off" spellcheck="false" required>
<button>Enter</button>
</form>
<p id="said" role="status"></p>
<script>{_SCRIPT}</script>
</html>
"""

LOGIN_POLICY = (
    f"default-src 'none'; script-src {_digest(_SCRIPT)}; style-src {_digest(_STYLE)}; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
