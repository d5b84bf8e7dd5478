#!/bin/sh
# Rebuilds the built-in classifiers from their sources.
#
#   build.sh          install the pinned compiler and rebuild every .wasm file
#   build.sh -check   rebuild into a temporary directory and compare byte for byte
#
# Needs Node 20 or later and npm.
set -eu
cd "$(dirname "$0")"

out=
case "${1:-}" in
'') ;;
-check)
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	;;
*)
	echo "usage: build.sh [-check]" >&2
	exit 2
	;;
esac

npm ci --no-audit --no-fund --silent

status=0
for source in */*.ts; do
	name=$(basename "$source" .ts)
	case "$source" in "$name/$name.ts") ;; *) continue ;; esac
	target=${out:-$name}/$name.wasm
	node ../sdk/assemblyscript/build.mjs "$source" "$target"
	size=$(wc -c <"$target" | tr -d ' ')
	if [ "$size" -gt 16384 ]; then
		echo "$name.wasm has $size bytes; the limit is 16384" >&2
		status=1
	fi
	if [ -n "$out" ] && ! cmp -s "$target" "$name/$name.wasm"; then
		echo "$name.wasm differs from what its sources give; run plugins/builtin/build.sh and commit the result" >&2
		status=1
	fi
done
if [ "$status" -eq 0 ]; then
	echo "built-in classifiers: ok"
fi
exit "$status"
