"""The table of read-only commands: data. Left out on purpose is every option that writes, runs or follows links."""

from __future__ import annotations

from collections.abc import Mapping

from novacode.authority.usage import Usage

__all__ = ["TABLE"]

_GREP = (
    "-i --ignore-case -v --invert-match -w --word-regexp -x --line-regexp -c --count -l --files-with-matches "
    "-L --files-without-match -n --line-number -H --with-filename -h --no-filename -o --only-matching -q --quiet "
    "--silent -s --no-messages -r --recursive -E --extended-regexp -F --fixed-strings -G --basic-regexp -P "
    "--perl-regexp -a --text -b --byte-offset -Z --null -z --null-data -I -T --initial-tab --line-buffered -y"
)
_GREP_VALUED = (
    "-A --after-context -B --before-context -C --context -m --max-count --include --exclude --exclude-dir --label "
    "--binary-files -d --directories -D --devices"
)
_DIGEST = "-b --binary -t --text --tag -z --zero"

TABLE: Mapping[str, Usage] = {
    "arch": Usage.of(most=0),
    "basename": Usage.of("-a --multiple -z --zero", valued="-s --suffix", text_only=True),
    "cat": Usage.of(
        "-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T --show-tabs -u -v "
        "--show-nonprinting"
    ),
    "cksum": Usage.of(),
    "cmp": Usage.of("-b --print-bytes -l --verbose -s --quiet --silent", valued="-n --bytes -i --ignore-initial"),
    "column": Usage.of("-t --table -x", valued="-s --separator -c --columns -o --output-separator"),
    "comm": Usage.of("-1 -2 -3 --check-order --nocheck-order --total -z --zero-terminated"),
    "cut": Usage.of(
        "-n -s --only-delimited --complement -z --zero-terminated",
        valued="-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter",
    ),
    "date": Usage.of(
        "-u --utc --universal -R --rfc-email", optional="-I --iso-8601", most=1, first=r"\+.*", text_only=True
    ),
    "df": Usage.of("-h --human-readable -k -i --inodes -T --print-type", most=1),
    "diff": Usage.of(
        "-u -c -q --brief -s --report-identical-files -i --ignore-case -w --ignore-all-space -b --ignore-space-change "
        "-B --ignore-blank-lines -a --text -N --new-file -y --side-by-side -p --no-dereference -t --expand-tabs",
        optional="--color --unified --context",
        valued="-U -C -W --width --label -x --exclude",
    ),
    "dirname": Usage.of("-z --zero", text_only=True),
    "du": Usage.of(
        "-a --all -b --bytes -c --total -h --human-readable -k -m -s --summarize -S -x --one-file-system "
        "--apparent-size",
        valued="-d --max-depth --exclude -t --threshold",
    ),
    "egrep": Usage.of(
        _GREP, optional="--color --colour", valued=_GREP_VALUED, patterns="-e --regexp", files="-f --file", skip=1
    ),
    "exit": Usage.of(most=1, first=r"\d+", text_only=True),
    "expand": Usage.of("-i --initial", valued="-t --tabs"),
    "fgrep": Usage.of(
        _GREP, optional="--color --colour", valued=_GREP_VALUED, patterns="-e --regexp", files="-f --file", skip=1
    ),
    "file": Usage.of("-b --brief -i --mime --mime-type --mime-encoding -h --no-dereference -k --keep-going"),
    "fold": Usage.of("-b --bytes -s --spaces", valued="-w --width"),
    "grep": Usage.of(
        _GREP, optional="--color --colour", valued=_GREP_VALUED, patterns="-e --regexp", files="-f --file", skip=1
    ),
    "head": Usage.of(
        "-q --quiet --silent -v --verbose -z --zero-terminated", valued="-n --lines -c --bytes", numbers=True
    ),
    "hexdump": Usage.of("-C -b -c -d -o -v -x", valued="-n -s"),
    "id": Usage.of("-u -g -G -n -r --user --group --groups --name --real", most=1, text_only=True),
    "jq": Usage.of(
        "-r --raw-output -c --compact-output -e --exit-status -S --sort-keys -M --monochrome-output -C --color-output "
        "-n --null-input -s --slurp -R --raw-input -j --join-output --tab",
        valued="--indent",
        skip=1,
    ),
    "ls": Usage.of(
        "-1 -a --all -A --almost-all -B -c -C -d --directory -F -g -G -h --human-readable -i --inode -k -l -m -n -N -o "
        "-p -q -Q -r --reverse -R --recursive -s --size -S -t -u -U -v -x -X -Z --group-directories-first --full-time "
        "--author --no-group --numeric-uid-gid --si",
        optional="--color --classify --time --sort --format --time-style --indicator-style --quoting-style",
        valued="-I --ignore --hide -w --width",
    ),
    "md5sum": Usage.of(_DIGEST),
    "nl": Usage.of("-p", valued="-b -d -f -h -i -l -n -s -v -w"),
    "nproc": Usage.of("--all", most=0),
    "od": Usage.of("-a -b -c -d -o -s -v -x", valued="-A -j -N -t -w"),
    "paste": Usage.of("-s --serial -z --zero-terminated", valued="-d --delimiters"),
    "pwd": Usage.of("-L -P", most=0),
    "readlink": Usage.of("-f --canonicalize -e -m -n -q -s -v -z"),
    "realpath": Usage.of(
        "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing", files="--relative-to --relative-base"
    ),
    "rev": Usage.of(),
    "rg": Usage.of(
        "-i --ignore-case -s --case-sensitive -S --smart-case -v --invert-match -w --word-regexp -x --line-regexp -c "
        "--count --count-matches -l --files-with-matches --files-without-match -n --line-number -N --no-line-number "
        "-H --with-filename -I --no-filename -o --only-matching -q --quiet -F --fixed-strings -U --multiline "
        "--multiline-dotall -P --pcre2 -a --text -0 --null -. --hidden --no-ignore --no-ignore-vcs --no-heading "
        "--heading --column --vimgrep --trim --json --stats --no-messages --no-config -p --pretty --type-list",
        valued="-A --after-context -B --before-context -C --context -m --max-count -g --glob --iglob -t --type -T "
        "--type-not -d --max-depth -M --max-columns -j --threads -E --encoding -r --replace --color --sort --sortr",
        patterns="-e --regexp",
        files="-f --file",
        skip=1,
    ),
    "seq": Usage.of("-w --equal-width", valued="-f --format -s --separator", first=r"[-\d.]+", text_only=True),
    "sha1sum": Usage.of(_DIGEST),
    "sha256sum": Usage.of(_DIGEST),
    "sha512sum": Usage.of(_DIGEST),
    "sleep": Usage.of(most=1, first=r"[\d.]+[smhd]?", text_only=True),
    "sort": Usage.of(
        "-b -d -f -g -h -i -M -n -R -r -s -u -V -c -C -z -m --ignore-leading-blanks --dictionary-order --ignore-case "
        "--general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --reverse --stable --unique "
        "--version-sort --zero-terminated --merge",
        optional="--check",
        valued="-k --key -t --field-separator",
    ),
    "stat": Usage.of("-f --file-system -t --terse", valued="-c --format --printf"),
    "strings": Usage.of("-a --all -f --print-file-name", valued="-n --bytes -t --radix -e --encoding"),
    "tac": Usage.of("-b --before", valued="-s --separator"),
    "tail": Usage.of(
        "-q --quiet --silent -v --verbose -z --zero-terminated", valued="-n --lines -c --bytes", numbers=True
    ),
    "tr": Usage.of("-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1", most=2, text_only=True),
    "tree": Usage.of(
        "-a -d -f -i -p -s -h -D -F -r -t -C -n -Q -N --dirsfirst --noreport --du --prune --gitignore",
        valued="-L -I -P --filelimit --sort",
    ),
    "type": Usage.of("-a -t -p -P -f", text_only=True),
    "uname": Usage.of("-a -s -n -r -v -m -p -i -o --all", most=0),
    "unexpand": Usage.of("-a --all --first-only", valued="-t --tabs"),
    "uniq": Usage.of(
        "-c --count -d --repeated -D -u --unique -i --ignore-case -z --zero-terminated",
        valued="-f --skip-fields -s --skip-chars -w --check-chars",
        most=1,  # the second is the file it writes
    ),
    "wc": Usage.of("-c --bytes -m --chars -l --lines -L --max-line-length -w --words", valued="--total"),
    "which": Usage.of("-a", text_only=True),
    "whoami": Usage.of(most=0),
    "xxd": Usage.of("-b -e -p -u", valued="-c -g -l -s", most=1),  # the second is the file it writes
}
