#!/usr/bin/env bash
# Installs what a few tests need beyond Python, as packages of Debian or Ubuntu: Chromium, for the tests of the HTML report, and LaTeX, for
# the test that compiles the tables. Whatever it cannot install it names in one line and ends well all the same: those tests are then skipped.
set -uo pipefail

missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v pdflatex >/dev/null || missing+=(texlive-latex-base)
# booktabs
{ command -v kpsewhich >/dev/null && kpsewhich booktabs.sty >/dev/null; } || missing+=(texlive-latex-recommended)
[ ${#missing[@]} -eq 0 ] && exit 0

give_up() {
    echo "setup-system: $1, so without ${missing[*]} some tests are skipped"
    exit 0
}

command -v apt-get >/dev/null || give_up "no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && sudo -n true 2>/dev/null || give_up "neither root nor sudo without a password"
    as_root=(sudo -n)
fi
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The lists of packages may be old, or missing; then they are fetched, once.
install || { "${as_root[@]}" apt-get update -qq >"$log" 2>&1 && install; } || give_up "apt-get failed ($(tail -n 1 "$log"))"
echo "setup-system: installed ${missing[*]}"
