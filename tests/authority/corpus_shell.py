"""Shell lines and what each must come to under five policies, one letter each: Allow, asK or Deny.

In order: `plain` (default mode, no rules), `some` (a few allowed commands), `most` (everything allowed but a few
commands), `plan` (the rules of `some` in plan mode), `edits` (accept-edits, with paths that are denied).
A line of a block is one shell line; `␤` stands for a newline in it. Blank lines and lines that begin with `§` are not.
"""

from __future__ import annotations

PLAIN: tuple[str, ...] = ()
SOME = (
    "allow shell(git show *)",
    "allow shell(git diff *)",
    "allow shell(wc:*)",
    "allow shell(echo:*)",
    "allow shell(pwd)",
    "allow shell(make test)",
    "allow shell(node --check a.js)",
)
MOST = (
    "allow shell(*)",
    "deny shell(rm *)",
    "deny shell(touch:*)",
    "deny shell(git push:*)",
    "deny shell(shutdown)",
)
EDITS = ("deny edit(secret/**)", "deny read(**/.env)", "allow shell(make:*)")

_BLOCKS = {
    # Recognised as read-only, inside the workspace.
    "aaaaa": r"""
tee
ls
ls -la
ls -la src
ls -1 src/*.py
ls --color=auto src
/bin/ls -l
/usr/bin/wc -l README
\ls
'ls'
l's' -a
"ls" "-a"
cat README
cat ./README
cat -- README
cat src/a.py src/b.py
cat README | head -5 | wc -l
head -n 3 README
head -n3 README
head -3 README
tail -n +2 README
tail -20 README
wc -l README
wc -l src/*.py
nl -b a README
sort in.txt
sort -u in.txt
sort -k2,2 -t: in.txt
sort -rn in.txt | uniq -c
uniq in.txt
uniq -c in.txt
cut -d: -f1 in.txt
tr a-z A-Z
tac README
rev README
diff README in.txt
diff -u README in.txt
cmp README in.txt
comm -12 in.txt in.txt
stat README
stat -c %s README
file README
du -sh src
readlink -f README
realpath README
basename src/a.py .py
dirname src/a.py
md5sum README
sha256sum README
od -c README
xxd README
strings README
seq 1 3
date
date +%F
date -u +%s
uname -a
whoami
id
nproc
pwd
which git
type ls
command -v git
true
false
:
exit 0
sleep 0
echo hello
echo 'a; rm x'
echo "a && rm x"
echo a\;b
echo '$(not run)'
echo $((1+1))
echo $(( (1 + 2) * 3 ))
echo "$HOME"
echo "${x:-y}"
echo "$(git rev-parse HEAD)"
echo "$(ls | wc -l)"
printf '%s\n' a b
echo a > /dev/null
ls 2>/dev/null
ls 2>&1
ls >/dev/null 2>&1
ls >&2
cat < README
cat 0<README
cat <<'E'␤$(touch P)␤E
cat <<E␤plain text␤E
cat <<E␤$(git status)␤E
cat <<< text
find .
find . -name '*.c'
find src -type f -name '*.py' -print
find . -maxdepth 2 -not -name a
find . \( -name a -o -name b \) -print0
find . -newer README
find . -name a -prune -o -print
grep foo README
grep -E 'a|b' README
grep -e a -e b README
grep -c "" README
grep -A2 -B 2 foo README
grep '/etc/passwd' README
egrep -o 'f+' README
fgrep -x foo README
sed -n 1,5p README
sed -n '1,5p' README
sed -n '$p' README
sed -n '/foo/p' README
sed 's/a/b/g' README
sed -e 's/a/b/' -e '1d' README
sed 2q README
jq . data.json
jq -r '.a[] | .b' data.json
git status
git status -s
git status --porcelain=v2 -b
git status -uno
git diff
git diff --stat
git diff HEAD
git diff --cached --name-only
git diff HEAD -- README
git diff -U3
git log
git log --oneline -5
git log -n 3 --format=%H
git log --graph --all --decorate
git log -p -- README
git log --since=yesterday
git log -S foo
git show
git show HEAD
git show HEAD:README
git show --stat HEAD
git show --format='a && b'
git blame README
git blame -L 1,2 README
git branch
git branch -a
git branch -vv
git branch --show-current
git branch --list 'f*'
git tag
git tag -l 'v*'
git remote
git remote -v
git rev-parse HEAD
git rev-parse --show-toplevel
git rev-parse --abbrev-ref HEAD
git ls-files
git ls-files -o --exclude-standard
git ls-tree -r HEAD
git cat-file -p HEAD
git describe --tags --always
git merge-base HEAD HEAD
git rev-list --count HEAD
git for-each-ref --format='%(refname)'
git show-ref
git shortlog -sn HEAD
git check-ignore README
git --no-pager log -1
git --version
git version
python3 --version
test -f README
[ -f README ]
[ -n "a" ]
[ a = b ]
[ 1 -lt 2 ]
test ! -d nowhere
[[ -f README ]]
[[ a == a && -n b ]]
[[ ! -e nowhere || ( -d src ) ]]
set -e; ls
set -euo pipefail; ls
cd src && ls
cd src; cat a.py
cd ./src && ls -la && pwd
ls; pwd
ls && pwd || true
ls & wait_none=1
ls | cat
! ls
( ls )
{ ls; }
(cd src && ls)
if [ -f README ]; then cat README; else ls; fi
for f in a b; do echo "$f"; done
while false; do ls; done
until true; do ls; done
case a in a) ls;; *) pwd;; esac
time ls
time -p ls
nice ls
nice -n 5 ls
timeout 5 ls
timeout -k 1 5s git status
stdbuf -oL cat README
env ls
env LANG=C ls
LANG=C ls
LC_ALL=C sort in.txt
TZ=UTC date
NO_COLOR=1 git status
command ls
builtin pwd
sh -c ls
bash -c 'ls; pwd'
sh -c 'sh -c "git status"'
x=1; echo "$x"
ls # and a comment; rm x
ls␤pwd
ls \␤-a
ls \␤  -la src
cat <<'EOF'␤a \␤b␤EOF
ls .git*
printf '100%%\n'
tree -L 2
""",
    # Runs, writes or hides a command that the policies with rules forbid by name.
    "kkddk": r"""
nice LANG=C rm f
'X=1' rm f
ls | xargs -I% rm %
ls | xargs -I{} env rm {}
find . -exec env rm {} \;
find . -exec rm {}x \;
zsh -c 'rm f'
touch P
touch 'P'
/usr/bin/touch P
./touch P
t\ouch P
'touch' P
to'u'ch P
"touch" P
touch␤
\touch P
  touch   P
ls; touch P
ls && touch P
ls || touch P
ls | touch P
ls |& touch P
ls & touch P
ls &&␤touch P
ls␤touch P
ls␤␤   touch P
git show HEAD; touch P1
git show HEAD && touch P2
git show HEAD || touch P3
git show HEAD & touch P5
git show HEAD␤touch P6
pwd && touch P7
pwd;touch P7
pwd&touch P7
true && rm f1
( rm f2 )
(rm f2)
{ rm f3; }
command rm f4
command -p rm f4
builtin rm f4
exec rm f4
exec -a x rm f4
env X=1 rm f5
env rm f5
env -i rm f5
env - rm f5
env -u X rm f5
/usr/bin/env rm f5
env LANG=C env rm f5
timeout 5 rm f6
timeout -s KILL 5 rm f6
\rm f7
r\m f7
'rm' f7
"r"m f7
r''m f7
/bin/rm f7
../../bin/rm f7
sh -c 'rm f8'
bash -c "rm f8"
bash -lc 'rm f8'
bash -ec 'rm f8'
bash -e -c 'rm f8'
dash -c 'ls; rm f8'
sh -c "sh -c 'rm f8'"
/bin/sh -c 'rm f8'
env sh -c 'rm f8'
if true; then rm f9; fi
if rm f9; then ls; fi
if ls; then ls; elif rm f9; then ls; else ls; fi
if ls; then ls; else rm f9; fi
while rm f9; do ls; done
while true; do rm f9; break; done
until rm f9; do ls; done
for f in a b; do rm "$f"; done
for f in $(rm a); do ls; done
case a in a) rm f;; esac
case $(rm f) in a) ls;; esac
case a in $(rm f)) ls;; esac
xargs rm < list
ls | xargs rm
ls | xargs -n1 rm -f
ls | xargs -I{} rm {}
ls | xargs -0 -P 4 rm
find . -exec rm {} +
find . -exec rm {} \;
find . -execdir rm {} +
find . -ok rm {} \;
find . -name a -exec ls {} \; -exec rm {} \;
find . -name '*.c' -exec touch P1 {} +
sudo rm f
sudo -u root rm f
sudo -E -H rm f
sudo env rm f
doas rm f
nice rm f
nice -n 5 rm f
nohup rm f
nohup rm f &
time rm f
time -p rm f
/usr/bin/time rm f
stdbuf -oL rm f
setsid rm f
setsid -w rm f
ionice -c 3 rm f
busybox rm f
busybox sh -c 'rm f'
X=1 rm f
X=1 Y=2 rm f
LANG=C rm f
PATH=./evil rm f
! rm f
rm f &
rm -rf /
rm -rf -- f
rm f > /dev/null
> /dev/null rm f
2>/dev/null rm f
<README rm f
MODE=`touch P1` node --check a.js
MODE=$(touch P2) node --check a.js
MODE="$(touch P3)" node --check a.js
X=$(touch P)
git diff -- $(touch P1)
git diff -- `touch P2`
git diff -- "$(touch P2)"
git diff -- "`touch P2`"
wc -l <(touch P3)
wc -l < <(touch P3)
echo a > >(touch P)
echo "${X:-$(touch P4)}"
echo ${X:-`touch P4`}
echo ${X/a/$(touch P)}
echo ${X#$(touch P)}
echo "a$(echo "b$(touch P)")"
echo $(touch P)
echo `touch P`
echo $(ls; touch P)
echo $(ls␤touch P)
wc -l <<HERE␤$(touch P6)␤HERE
wc -l <<HERE␤`touch P6`␤HERE
wc -l <<-HERE␤	$(touch P6)␤	HERE
wc -l <<HERE␤text␤HERE␤touch P
wc -l <<A <<'B'␤$(touch P)␤A␤x␤B
wc -l <<< $(touch P)
wc -l <<< "$(touch P)"
cat < $(touch P)
echo a > $(touch P)
echo $'a\'' ; touch P5
echo 'a' ; touch P #'
echo "a" ; touch P #"
echo a#b; touch P
echo \'; touch P
echo \" ; touch P
echo "\""; touch P
echo '\'; touch P
[[ -n $(touch P) ]]
[[ $(touch P) == a ]]
[ -n "$(touch P)" ]
test -n "`touch P`"
x=(a $(touch P))
declare x=$(touch P)
export X=$(touch P)
local x=$(touch P)
readonly x=`touch P`
coproc touch P
coproc X { touch P; }
f() { touch P; }; f
function f { touch P; }; f
f() { touch P; }
eval touch P
eval 'touch P'
eval "ls; touch P"
git push
git push origin main
git  push
git 'push'
git --no-pager push
git -C . push
git -c a.b=c push
git --git-dir=.git push
git --git-dir .git push
/usr/bin/git push
ls && git push --force
shutdown
sudo shutdown
ls; shutdown
""",
    # Not recognised, and forbidden by nothing: asks, denied in plan mode.
    "kkadk": r"""
cat ~+/../x
cat ~2/x
cat .*/x
ls ./.?
printf '%n' PATH; ls
printf '%-3ln' PATH; ls
exec > P
exec ls
npm test
npm run build
pip install x
curl http://x
curl -o P http://x
wget x
mv a b
cp a b
mkdir d
ln -s /etc d
chmod +x a
chown a b
dd if=a of=b
kill 1
mount
crond
ps aux
env
printenv
set
history
git commit -m x
git add .
git checkout -b x
git switch x
git reset --hard
git clean -fd
git stash
git stash pop
git merge x
git rebase x
git fetch
git pull
git clone x
git config user.name x
git config --get user.name
git branch feature
git branch -D feature
git branch -d feature
git branch -m a b
git branch -f a HEAD
git branch -a feature
git branch --edit-description
git branch --set-upstream-to=x
git tag v1
git tag -d v1
git tag -a v1 -m x
git remote add x y
git remote remove x
git remote show origin
git log --output=P
git log --output P
git log --ext-diff
git log --show-signature
git log --format='%G?'
git grep -O foo
git rev-list --disk-usage HEAD
git archive -o P HEAD
git format-patch HEAD~1
git bundle create P HEAD
git update-index --refresh
git gc
git prune
git worktree add x
git reflog expire --all
git notes add -m x
git cat-file --batch --textconv
git cat-file --filters HEAD:README
git blame --contents P README
git ls-remote ext::sh
git st
git -p log
git
sort -oP3 in.txt
sort -o P3 in.txt
sort --output=P3 in.txt
sort --outp=P3 in.txt
sort -uoP in.txt
sort --compress-program=./x in.txt
sort -T . in.txt
sort --files0-from=P
uniq in.txt P4
uniq -c in.txt P4
uniq -- in.txt P4
xxd README P
xxd -r README P
xxd -r README
find . -fprint P2
find . -fprint0 P2
find . -fls P2
find . -fprintf P2 x
find . -name x -delete
find -delete
find . -L
find -L . -name x
find . -files0-from x
tail -f README
tail --follow README
tail -F README
date -s yesterday
date --set=yesterday
date 01010000
hostname evil
tree -o P
tree -R
file -C -m x
rg --pre ./script x
rg --pre=./script x
rg -z x
rg --hostname-bin ./x y
rg -L x
grep -R x .
grep --dereference-recursive x .
diff -r src src
less README
more README
man ls
ls --hyperlink-x
ls --dired
jq 'env' data.json
jq -n '$ENV.HOME'
jq -n 'import "a" as a; 1'
jq -f P data.json
jq -L . x data.json
printf -v PATH x
test -v x
[ -v 'a[0]' ]
[ a -nt b ]
[ x -eq 1 ]
[ -f a -a -f b ]
[[ -v x ]]
[[ a =~ b ]]
[[ $x -eq 1 ]]
cd
cd -
cd src && cd ..
cd src && git status
cd src; git log
cd "$X"
cd *
pushd src
popd
cat "$X"
cat $X
cat $(ls)
cat "$(ls)"
ls $X
ls *
ls -- *
ls *.py
cat *.py
cat src/[ab].py
cat {README,in.txt}
cat {1..3}
git log {a,b}
X=1 ls
PATH=./evil ls
PATH=./evil:$PATH ls
LD_PRELOAD=./x.so ls
LD_LIBRARY_PATH=. ls
BASH_ENV=x ls
ENV=x ls
IFS=x ls
GIT_DIR=x git status
GIT_EXTERNAL_DIFF=./x git diff
GIT_PAGER=./x git log
GIT_SSH_COMMAND=./x git status
PAGER=./x git log
EDITOR=./x ls
LESSOPEN=x ls
LANG=$X ls
LANG=$(ls) ls
LANG+=x ls
PATH=./evil; ls
PATH=./evil␤ls
ls; PATH=./evil; pwd
export PATH=./evil; ls
export PATH; ls
declare PATH=x; ls
readonly PATH; ls
typeset x=1
unset PATH; ls
for PATH in ./evil; do ls; done
for IFS in a; do ls; done
http_proxy=x; ls
read x; ls
env PATH=./evil ls
env -u PATH ls
env -C / ls
nohup ls
setsid ls
MODE=x make
./ls
./git status
bin/cat README
/tmp/ls
~/bin/ls
../ls
./script.sh
f
ls; f
git-status
awkward
""",
    # Cannot be judged: asks whatever the rules, denied in plan mode.
    "kkkdk": r"""
echo "$\␤(rm f)"
echo "$\␤x"
cat <<EOF␤$\␤(rm f)␤EOF
cat <<EOF␤E\␤OF␤rm f␤EOF
cat <<-EOF␤	\␤EOF␤rm f␤EOF
cat <<$'EOF'␤x␤EOF
ls # \␤rm f
cat < ~-/x
ls > ~+/../x
nice LANG=C ls
'X=1' ls
find . -exec sh -c 'rm {}' \;
ls | xargs -I{} sh -c 'rm {}'
ls | xargs env
ls | xargs sudo
ls | xargs nice
ls | xargs timeout 5
ls | xargs command
ls | xargs find .
ls | xargs xargs
ls | xargs sh -c
ls | xargs sh -c 'ls "$0"'
ls | xargs -I% % f
ls | xargs -I % env % f
ls | xargs -I{} sh -c '{}'
ls | xargs -I{} sh -c '{} f'
ls | xargs -I{} sudo {} f
ls | xargs --replace rm {}
ls | xargs -i rm {}
find . -exec {} \;
find . -exec env {} f \;
find . -exec sh -c '{}' \;
find . -exec sh -c 'echo {}' \;
env A=$X ls
env A=$(ls) ls
env A=1 B=$X ls
((  rm f2 ) )
LANG[0]=x ls
if
$X
$X foo
"$X" foo
${X}
$(ls)
`ls`
"$(ls)"
$(echo rm) f
{rm,f}
{ls,-a}
l*
/bin/l?
./*
[a]b x
ls; $X
ls | $X
"" x
'' x
env $X
env "$X" f
sudo $X
timeout 5 $X
timeout "$X" ls
nice $X
xargs $X
xargs "$X"
sh -c "$X"
bash -c $X
sh -c "echo $X"
sh -c 'ls' x y
bash -c
bash -c -- ls
eval "$X"
eval
eval ls
source x
. x
. ./x.sh
source <(ls)
trap 'ls' EXIT
trap ls 0
alias ls=rm
alias x='rm f'; x
unalias ls
enable -f x y
shopt -s expand_aliases
hash -p /bin/rm ls
bind x
f() { ls; }
ls() { pwd; }; ls
function ls { pwd; }
function git() { pwd; }; git status
coproc ls
((x=1))
(( x++ ))
let x=1
let 'a[$(ls)]=1'
echo $((x))
echo $((x+1))
echo $((x=1))
echo $[1+1]
echo $[x]
echo ${!X}
echo "${!X*}"
echo ${X@P}
echo ${X[1]}
echo ${X[$(ls)]}
echo ${X:=y}
echo ${PATH:=y}
echo ${X:1:2}
echo $'a'
echo $'\x41'
echo $"a"
echo @(a|b)
ls !(a)
echo ${ ls; }
for ((i=0; i<3; i++)); do ls; done
select x in a b; do ls; done
ls > $X
ls > "$X"
ls > *
ls >> $X
ls < $X
ls > {a,b}
ls > "$(pwd)/x"
exec 3> $X
ls &> $X
ls >& $X
(
ls (
ls )
{ ls
if ls
ls &&
ls |
| ls
&& ls
;; ls
ls 'a
ls "a
ls `a
ls $(a
ls ${a
cat <<E
cat <<'E'␤x
for do
case a in
time ! x (
ls <
ls >
done
fi
}
function
ls "a'
x=(
echo `echo \`ls\``
sudo -Z ls
sudo --weird ls
timeout --weird 5 ls
nice --weird ls
xargs --weird ls
env -S 'ls -a'
env --split-string=ls
env --weird ls
command -x ls
busybox -x ls
""",
    # Opaque: allowed by no wide rule while another rule forbids something.
    "kkkdk ": r"""
zsh -c ls
ksh -c 'ls'
zsh -c 'echo =ls'
node --check  a.js --eval x
node --check a.js b.js
node --check b.js
PATH=./evil:$PATH node --check a.js
BASH_ENV=./x node --check a.js
LD_PRELOAD=./x.so node --check a.js
NODE_OPTIONS=x node --version
PYTHONSTARTUP=x python3 --version
PYTHONPATH=. python3 --version
git grep --open-files-in-pager=vi foo
bash --version
sh
bash
sh script.sh
bash ./script.sh
ls | sh
ls | bash -s
sh < script.sh
sh <<E␤ls␤E
bash <(ls)
python3
python3 x.py
python3 -c 'print(1)'
python3.11 -c 'print(1)'
python -m http.server
node -e 1
node x.js
perl -e 1
ruby -e 1
php -r 1
lua x
awk 'BEGIN{system("touch P8")}'
awk 1 README
gawk 1 README
mawk 1 README
sed -i s/a/b/ in.txt
sed --in-place s/a/b/ in.txt
sed -n 'w P5' in.txt
sed 's/a/b/w P' in.txt
sed 's/a/b/e' in.txt
sed '1e ls' in.txt
sed -f script in.txt
sed '1r /etc/passwd' in.txt
sed -n '1,5p;w P' in.txt
sed 's|a|b|w P' in.txt
sed "s/a/b/␤w P" in.txt
sed y/a/b/ in.txt
sed -s -i 1d in.txt
sed 1p -i in.txt
sed -e 1p -e 'w P' in.txt
sed 's/[/]x/y/w P' in.txt
git -c alias.x='!touch P7' x
git -c core.pager=./x log
git -c core.fsmonitor=./x status
git --exec-path=. status
git --exec-path=./evil log
git --config-env=a=b status
git -C /tmp status
git --git-dir=/x status
git --work-tree=/ status
git bisect run ls
git submodule foreach ls
git rebase --exec ls HEAD
git rebase HEAD --exec=ls
git filter-branch x
git ls-remote --upload-pack=./x .
git fetch --upload-pack ./x
ssh host ls
ssh host 'rm f'
docker run x ls
kubectl exec x -- ls
tmux new ls
screen -dm ls
script -c ls
watch ls
parallel ls
strace ls
flock x ls
chroot x ls
unshare ls
nsenter ls
su -c ls
su root -c 'rm f'
systemd-run ls
at now
batch
crontab x
tar cf P src
tar xf x
tar --to-command=x -xf y
rsync a b
vi README
vim -c x
ed README
expect -c x
npx x
uvx x
sudo
env python3 x.py
timeout 5 python3 x.py
nice bash script.sh
""",
    # Reads outside the workspace: asks, except where a rule allows the command by name.
    "kkakk": r"""
cat ~*
ls ~x*/y
cat sr*/../../x
cat /etc/passwd
cat ../x
cat src/../../x
cat ~/.ssh/id_rsa
cat ~
cat ~root/x
head -1 /etc/passwd
ls /
ls ..
ls -la ~
ls ../*
ls /etc/*
grep x /etc/passwd
grep -r x /
grep -f /etc/passwd README
find /
find / -name x
find .. -name x
find . -newer /etc/passwd
sed -n 1p /etc/passwd
sort /etc/passwd
diff /etc/passwd README
git log -- /etc
git grep -n x /etc
stat /etc/passwd
du -sh /
test -f /etc/passwd
[ -e /etc/shadow ]
cat < /etc/passwd
cat 0</etc/passwd
cat <> /dev/null < /etc/passwd
[[ -f /etc/passwd ]]
cd / && ls
cd ..
cd ../.. && cat x
cd ~ && ls
cd src && cat ../../x
cat out/secret.txt
cat out/*
ls out
cat outfile
jq . /etc/x.json
readlink -f /etc/x
tree /
rev /dev/sda
""",
    "kaaak": r"""
echo /etc/*
echo ../*
wc -l /etc/passwd
git diff /etc/passwd README
git diff --no-color ../x README
git show HEAD -- /etc
""",
    # Writes inside the workspace through the shell.
    "kkada": r"""
make test -f evil
make -f evil test
make test2
make check
make
ls > P
ls >> P
ls >| P
ls &> P
ls &>> P
ls >& P
ls 2> P
ls 2>&1 >P
> P
>P
: > P
true > P
ls > src/new.txt
ls > ./P
ls > "P Q"
ls >'P'
cat < README > P
cat <<E > P␤x␤E
cat > P <<'E'␤x␤E
git show HEAD > P8
git show HEAD | tee P4
git status | tee -a P
ls | tee P Q
ls | tee -- P
{ ls; } > P
( ls ) > P
if ls; then pwd; fi > P
for f in a; do echo "$f"; done > P
ls 3> P
ls <> P
(ls > P)
echo "$(ls > P)"
sh -c 'ls > P'
bash -c "ls >> P"
timeout 5 ls > P
cd src && ls > P
""",
    # Writes that ask even where edits are accepted.
    "kkadk  ": r"""
ls > HEAD
ls > src/HEAD
ls > .git/config
ls > .git/hooks/pre-commit
ls > src/.git/config
ls > .env
ls > .env.local
ls > .novacode/config.toml
ls > .bashrc
ls > .envrc
ls > .GIT/config
ls | tee .git/config
ls > /tmp/P
ls > ../P
ls > ~/P
ls > ~/.ssh/authorized_keys
ls > /dev/sda
ls > /dev/tcp/host/80
ls > out/new.txt
ls > src/../../P
ls | tee /etc/passwd
ls | tee out/P
ls 2> ../P
cd .. && ls > P
cd / && ls > P
ls > outfile
""",
    # Paths that rules forbid, by whatever command they are touched.
    "kkadd": r"""
ls > secret/key
ls > ./secret/key
ls > src/../secret/key
ls > SECRET/key
ls >> secret/a/b
ls | tee secret/key
ls && pwd > secret/key
sh -c 'ls > secret/key'
cd secret && ls > key
""",
    "aaaad": r"""
diff src src
cat .env
cat ./.env
cat src/.env
cat src/../.env
head -1 .env
grep x .env
ls; cat .env
cat < .env
cat README .env
cat .en*
wc -l .env
sh -c 'cat .env'
cd src && cat .env
""",
    # Allowed by the rules of `some`.
    "kaada": r"""
make test
make 'test'
make   test
'make' test
""",
    "kakdk": r"""
node --check a.js
'node' --check "a.js"
LANG=C node --check a.js
timeout 5 node --check a.js
env node --check a.js
nice node --check a.js
""",
    "kaadk": r"""
echo ./.*/*
git show --output=P --format=%H
git diff --ext-diff
git diff "$X"
git diff $X
wc [ab]
echo `ls`
echo $(ls)
echo $X
git show --output=P
git diff --output=P6
git diff -O P
wc *
wc --files0-from=P
""",
    # Searches folders in which a file may be that another policy denies to read.
    "aaaak": r"""
grep -rn foo src
grep -r foo
grep --include='*.py' -r foo .
egrep foo src
git grep -n foo
rg foo src
rg foo
cat README | rg foo
""",
    # Compares what is in two folders, and follows a link there that leads out.
    "kkakd": r"""
diff . src
""",
}


def _split(block: str) -> list[str]:
    return [line.replace("␤", "\n") for line in block.splitlines() if line.strip() and not line.startswith("§")]


CORPUS: list[tuple[str, str]] = [
    (line, verdicts.strip()) for verdicts, block in _BLOCKS.items() for line in _split(block)
]
