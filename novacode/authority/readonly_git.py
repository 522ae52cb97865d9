"""The part of the table that is git: data. A command that is not here, an alias for instance, is not read-only."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.authority.usage import Usage

__all__ = ["GIT", "GIT_GLOBALS"]

GIT_GLOBALS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
"""Options in front of the command that keep it read-only: not `-c`, `-C`, `--exec-path`, `--git-dir`, `-p`."""

_DIFF = (
    "-p -u --patch -s --no-patch --raw --patch-with-raw --numstat --shortstat --summary --compact-summary --name-only "
    "--name-status --no-color --no-renames --check --full-index --binary --minimal --patience --histogram -a --text -R "
    "-b --ignore-space-change -w --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --ignore-cr-at-eol "
    "-W --function-context --exit-code --quiet --no-ext-diff --no-textconv --cached --staged --merge-base -z -M -B "
    "--pickaxe-all --pickaxe-regex --no-prefix --cc -c --combined-all-paths --no-indent-heuristic --indent-heuristic"
)
_DIFF_OPTIONAL = (
    "--stat --dirstat --color --color-words --word-diff --find-renames --find-copies --ignore-submodules --submodule "
    "--abbrev --color-moved --relative"
)
_DIFF_VALUED = (
    "-U --unified -S -G --diff-filter --diff-algorithm --word-diff-regex --src-prefix --dst-prefix --inter-hunk-context"
)
_LOG = (
    "--oneline --graph --all --branches --tags --remotes --first-parent --merges --no-merges --reverse --follow "
    "--abbrev-commit --no-abbrev-commit --no-decorate --source --date-order --author-date-order --topo-order "
    "--show-signature-none --left-right --cherry-pick --cherry-mark --boundary --full-history --simplify-merges "
    "--ancestry-path --no-notes --parents --children -i --regexp-ignore-case -E --extended-regexp -F --fixed-strings "
    "-P --perl-regexp --all-match --invert-grep -g --walk-reflogs -m -t -r --root --relative-date --no-walk"
)
_LOG_OPTIONAL = "--decorate --pretty --show-notes --notes --encoding"
_LOG_VALUED = (
    "-n --max-count --skip --since --after --until --before --author --committer --grep --format --date -L "
    "--decorate-refs --decorate-refs-exclude --min-parents --max-parents"
)
_HISTORY = Usage.of(
    f"{_DIFF} {_LOG}",
    optional=f"{_DIFF_OPTIONAL} {_LOG_OPTIONAL}",
    valued=f"{_DIFF_VALUED} {_LOG_VALUED}",
    numbers=True,
)

GIT: Mapping[str, Usage] = {
    "blame": Usage.of(
        "-b -c -f -l -n -s -t -w -e -p --porcelain --line-porcelain -M -C --root", valued="-L --since --date"
    ),
    "branch": Usage.of(
        "-a --all -r --remotes -v -vv --verbose --list --show-current --no-color -i --ignore-case",
        optional="--color --column --merged --no-merged --contains --no-contains --points-at",
        valued="--sort --format",
        required="--list",
        text_only=True,
    ),
    "cat-file": Usage.of("-t -s -e -p", text_only=True),
    "check-ignore": Usage.of("-q --quiet -v --verbose -n --non-matching --no-index"),
    "describe": Usage.of(
        "--all --tags --always --long --exact-match --first-parent",
        optional="--abbrev",
        valued="--match --exclude --candidates",
        text_only=True,
    ),
    "diff": Usage.of(_DIFF, optional=_DIFF_OPTIONAL, valued=_DIFF_VALUED),
    "diff-tree": _HISTORY,
    "for-each-ref": Usage.of(valued="--format --sort --count --points-at --contains --merged", text_only=True),
    "grep": Usage.of(
        "-i --ignore-case -v --invert-match -w --word-regexp -n --line-number -l --files-with-matches -L "
        "--files-without-match -c --count -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp "
        "-h -H -o --only-matching -q --quiet -I --cached --untracked --heading --break -p --show-function -W "
        "--name-only",
        optional="--color",
        valued="-A -B -C --max-depth --threads -m --max-count",
        patterns="-e",
        skip=1,
        numbers=True,
    ),
    "log": _HISTORY,
    "ls-files": Usage.of(
        "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -k --killed -t -v -z "
        "--exclude-standard --full-name --error-unmatch --directory --no-empty-directory --eol",
        valued="-x --exclude",
        optional="--abbrev",
    ),
    "ls-tree": Usage.of("-d -r -t -l --long -z --name-only --name-status --full-name --full-tree", optional="--abbrev"),
    "merge-base": Usage.of("-a --all --octopus --independent --is-ancestor --fork-point", text_only=True),
    "name-rev": Usage.of("--tags --name-only --always", text_only=True),
    "remote": Usage.of("-v --verbose", most=0),
    "rev-list": Usage.of(f"{_LOG} --count --objects", optional="--pretty --abbrev", valued=_LOG_VALUED, numbers=True),
    "rev-parse": Usage.of(
        "--show-toplevel --show-prefix --show-cdup --git-dir --git-common-dir --is-inside-work-tree "
        "--is-inside-git-dir --is-bare-repository --verify -q --quiet --symbolic --symbolic-full-name --all --branches "
        "--tags --absolute-git-dir",
        optional="--short --abbrev-ref",
        text_only=True,
    ),
    "shortlog": Usage.of(
        "-n --numbered -s --summary -e --email -c --all --no-merges", valued="--since --until --author"
    ),
    "show": _HISTORY,
    "show-ref": Usage.of(
        "--head --heads --tags --branches -d --dereference -s --verify -q --quiet",
        optional="--hash --abbrev",
        text_only=True,
    ),
    "status": Usage.of(
        "-s --short -b --branch --long -v --verbose -z --show-stash --no-renames --ahead-behind --no-ahead-behind",
        optional="--porcelain --ignored --untracked-files --column --ignore-submodules",
        valued="-u",
    ),
    "tag": Usage.of(
        "-l --list",
        optional="--contains --merged --no-merged",
        valued="--sort --format -n",
        required="-l --list",
        text_only=True,
    ),
    "version": Usage.of("--build-options", most=0),
    "whatchanged": _HISTORY,
}
