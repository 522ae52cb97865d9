"""How a report looks: colours that people with any colour vision can tell apart, for light, dark and paper."""

from __future__ import annotations

__all__ = ["STYLE"]

_KINDS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f", "#b2912f")
"""After Okabe and Ito, Color Universal Design (2008), with three more."""

_LINES = (0, 1, 2, 3, 4, 6)

_ROLES = "\n".join(
    (
        *(f".k{number} {{ fill: {colour}; background: {colour}; }}" for number, colour in enumerate(_KINDS)),
        *(f".c{number} {{ stroke: {_KINDS[at]}; }}" for number, at in enumerate(_LINES)),
    )
)

STYLE = f"""
:root {{ color-scheme: light dark; --ink: #1c2128; --soft: #5b6470; --paper: #fff; --card: #f4f6f8; --line: #d8dce1;
  --good: #7fb8a4; --stopped: #9fb6d6; --limit: #e3c565; --refused: #c9a0c4; --failed: #d9a07a; --bad: #c8102e;
  --crashed: #8a8f98; --accent: #0b5cad; }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ --ink: #e4e7eb; --soft: #9aa3ae; --paper: #14171b;
  --card: #1d2228; --line: #363d46; --good: #3f7f6a; --stopped: #3d5a80; --limit: #96802b; --refused: #7d5578;
  --failed: #96603a; --bad: #ff4d5e; --crashed: #6b7078; --accent: #6db1ff; }} }}
* {{ box-sizing: border-box; }}
body {{ color: var(--ink); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; margin: 0; }}
main {{ max-width: 72rem; margin: 0 auto; padding: 1.5rem clamp(1rem, 3vw, 2rem) 3rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }}
h2 {{ font-size: 1.25rem; margin: 2.5rem 0 .5rem; padding-top: 1rem; border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.02rem; margin: 1.6rem 0 .4rem; }}
p {{ margin: .4rem 0 .8rem; max-width: 46rem; }} .soft {{ color: var(--soft); overflow-wrap: anywhere; }}
code {{ font: .86em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }}
.facts {{ display: flex; flex-wrap: wrap; gap: .75rem; }}
.fact {{ background: var(--card); border-radius: .5rem; padding: .6rem 1rem; font-size: .9rem; color: var(--soft); }}
.fact b {{ display: block; font-size: 1.4rem; color: var(--ink); font-variant-numeric: tabular-nums; }}
.fact.bad b {{ color: var(--bad); }}
.wide {{ overflow-x: auto; background: linear-gradient(to right, var(--paper) 1.5rem, transparent 3rem) local,
  linear-gradient(to left, var(--paper) 1.5rem, transparent 3rem) local,
  linear-gradient(to right, var(--line), transparent .8rem),
  linear-gradient(to left, var(--line), transparent .8rem); }}
figure {{ margin: 1rem 0 1.5rem; }} figcaption {{ font-size: .9rem; color: var(--soft); margin-bottom: .35rem; }}
svg {{ display: block; width: 100%; min-width: 60rem; height: auto; font: 13px system-ui, sans-serif; }}
.box {{ fill: var(--card); stroke: var(--line); }}
text {{ fill: var(--ink); stroke: var(--paper); stroke-width: 3px; paint-order: stroke; }}
.key {{ display: inline-block; width: 2.75rem; min-width: 0; margin-right: .4em; vertical-align: middle; }}
.grid {{ stroke: var(--line); }}
.curve {{ fill: none; stroke-width: 2.2; }}
.stop {{ stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 4 3; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .9rem; max-width: none; }}
.legend i {{ display: inline-block; width: 1.3em; height: .8em; margin-right: .4em; border-radius: 2px;
  vertical-align: middle; }}
table {{ border-collapse: collapse; font-size: .9rem; margin: .5rem 0; }}
td, th {{ border-bottom: 1px solid var(--line); padding: .3rem .8rem .3rem 0; text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums; }}
th {{ font-weight: 600; vertical-align: bottom; }} table:not(.first) th {{ white-space: nowrap; }}
td:first-child, th:first-child {{ text-align: left; }}
.first td:nth-child(2), .first th:nth-child(2) {{ text-align: left; min-width: 15rem; }}
.faults td, .faults th, .spans td, .spans th {{ text-align: left; }}
.texts {{ min-width: 40rem; }} .texts td, .texts th {{ text-align: left; overflow-wrap: anywhere; }}
.texts td:nth-child(2) code {{ white-space: nowrap; }} .texts td:nth-child(3) {{ text-align: right; }}
summary {{ cursor: pointer; color: var(--accent); }}
.s-completed {{ fill: var(--good); background: var(--good); }}
.s-cancelled {{ fill: var(--stopped); background: var(--stopped); }}
.s-limit {{ fill: var(--limit); background: var(--limit); }}
.s-refused {{ fill: var(--refused); background: var(--refused); }}
.s-failed {{ fill: var(--failed); background: var(--failed); }}
.s-crashed, .s-other {{ fill: var(--crashed); background: var(--crashed); }}
.s-violated {{ fill: var(--bad); background: var(--bad); }}
.p-asked {{ fill: #9ec5e8; background: #9ec5e8; }} .p-stream {{ fill: #0072b2; background: #0072b2; }}
.p-waiting {{ fill: #a8adb5; background: #a8adb5; }} .p-hook {{ fill: #8c6bb1; background: #8c6bb1; }}
.p-asking {{ fill: #e69f00; background: #e69f00; }} .p-queued {{ fill: #56b4e9; background: #56b4e9; }}
.p-running {{ fill: #009e73; background: #009e73; }} .p-stopping {{ fill: #d55e00; background: #d55e00; }}
{_ROLES}
@media (max-width: 40rem) {{ .violations, .violations tbody, .violations tr, .violations td {{ display: block; }}
  .violations {{ min-width: 0; }} .violations thead {{ display: none; }} .violations td {{ border: 0; padding: 0; }}
  .violations td:nth-child(n) {{ text-align: left; }} .violations td:first-child {{ font-weight: 600; }}
  .violations tr {{ border-bottom: 1px solid var(--line); padding: .5rem 0; }}
  .violations td:nth-child(3)::before {{ content: "runs: "; }}
  .violations td:nth-child(4)::before {{ content: "stopped at: "; }} }}
@media print {{ :root {{ color-scheme: light; }} body {{ font-size: 11pt; }} main {{ max-width: none; padding: 0; }}
  td, th {{ font-size: 8pt; padding-right: .5rem; }} table:not(.first) th {{ white-space: normal; }}
  svg, .texts {{ min-width: 0; }} .key {{ width: 2.75rem; }} .wide {{ overflow: visible; background: none; }}
  svg, tr {{ break-inside: avoid; }} h2, h3, figcaption {{ break-after: avoid; }}
  .parts td, .parts th {{ font-size: 5.5pt; padding-right: .2rem; }}
  details::details-content {{ content-visibility: visible; block-size: auto; }} * {{ print-color-adjust: exact; }} }}
"""
