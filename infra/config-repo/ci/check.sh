#!/bin/sh
# Everything that is checked of a change: ci/check.sh [FOLDER WITH THE POLICY AS IT IS]
# What a reviewer wants to see is written to policy-change.md. Fails where the policy is wrong, not where it loosens.
set -eu

costguard policy check .
costguard policy fmt . --check
costguard policy test --policy .

[ $# -ge 1 ] || exit 0

# 10 says that something loosens, or that something would be done: that is for the reviewer to judge
shown() { "$@" >> policy-change.md || [ $? -eq 10 ]; }

: > policy-change.md
shown costguard policy diff "$1" . --markdown
if [ -f fleet.json ]; then # what `costguard policy plan . --record fleet.json` saw where clouds can be asked
    echo >> policy-change.md
    shown costguard policy plan . --policy "$1" --recorded fleet.json --markdown
fi
if [ -d history ]; then # what `costguard history export --out history` read there
    costguard policy backtest . --current "$1" --history history --markdown policy-backtest.md > /dev/null
    { echo; cat policy-backtest.md; } >> policy-change.md
    rm policy-backtest.md
fi
cat policy-change.md
