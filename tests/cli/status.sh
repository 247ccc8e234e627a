# status, mount and umount.
. "${0%/*}/lib.sh"

# A bucket.
expect 3 "$cairn" status
told bucket
[ ! -e "$CAIRNDB_STORAGE_PATH" ] || fail 'asking made a bucket'
mkdir "$CAIRNDB_STORAGE_PATH"
expect 0 "$cairn" status
grep -qx 'kind: directory' "$out" || fail kind
grep -qx 'writable: true' "$out" || fail writable
expect 0 "$cairn" status --json
json '.kind == "directory" and .writable and .probe == "ok" and .bytes_available > 0'
same "$("$cairn" ls -r)" ''

# A mount's own words, here those of a directory that looks like one.
mkdir -p "$dir/mnt/.cairn"
expect 1 "$cairn" status "$dir/bucket"
told 'no bucket is mounted'
printf '%s' '{"store":"x","kin":{"reads":3},"mounts":["a"],"ro":false}' >"$dir/mnt/.cairn/status.json"
expect 0 "$cairn" status "$dir/mnt"
printed "$(printf 'store: x\nkin\n  reads: 3\nmounts\n  -: a\nro: false')"
expect 0 "$cairn" status "$dir/mnt" --json
json '.kin.reads == 3'
printf nonsense >"$dir/mnt/.cairn/status.json"
expect 3 "$cairn" status "$dir/mnt"
told status.json

# mount runs the cairnfs that lies beside it; umount the system's program.
mkdir "$dir/bin"
cp "$cairn" "$dir/bin/cairn"
cat >"$dir/bin/cairnfs" <<'END'
#!/bin/sh
printf '<%s>' "$@"
exit 4
END
chmod +x "$dir/bin/cairnfs"
expect 4 "$dir/bin/cairn" mount -o ro "a bucket" -o umask=077 /mnt
same "$(cat "$out")" '<a bucket></mnt><-o><ro,umask=077>'
expect 4 "$dir/bin/cairn" mount /mnt
same "$(cat "$out")" '</mnt>'
rm "$dir/bin/cairnfs"
PATH="$dir/bin" expect 3 "$dir/bin/cairn" mount /mnt
told 'cairnfs: No such file'
for program in umount fusermount3; do
	cat >"$dir/bin/$program" <<'END'
#!/bin/sh
for last; do :; done
[ "$last" = /mnt/x ]
END
	chmod +x "$dir/bin/$program"
done
PATH="$dir/bin:$PATH"
expect 0 "$cairn" umount /mnt/x
expect 3 "$cairn" umount /mnt/y
told '/mnt/y.*status 1'
exit 0
