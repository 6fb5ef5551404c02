# Run by boot.sh for golden.py: makes real arrays one after another, writes content to each, dumps their members; ARG: WORK_DIR
# WORK_DIR/plan has one array a line: NAME LEVEL CHUNK_KIB LAYOUT MEMBERS WRITE_BYTES DUMP_BYTES REWRITE SIZE_KIB   (- where there is none)
# WORK_DIR/content is written from array offset 0, as whole stripes. REWRITE names a file of lines "SOURCE_BLOCK ARRAY_BLOCK COUNT" (4 KiB blocks):
# WORK_DIR/content-rewrite is written so to the array, each line one request, after the array was stopped and assembled again (an empty stripe cache).
# WORK_DIR/dump-NAME receives the first DUMP_BYTES of member 0, then of member 1, and so on.
work=$1
{ echo "kernel $(uname -r)"; mdadm --version 2>&1; } > "$work/versions"
exec 3< "$work/plan"
while read -r name level chunk layout members write_bytes dump_bytes rewrite size <&3; do
  disks=$(echo $DISKS | cut -d' ' -f1-$members)
  for disk in $disks; do mdadm --zero-superblock --force $disk 2>/dev/null; dd if=/dev/zero of=$disk bs=$dump_bytes count=1 iflag=fullblock oflag=direct status=none; done
  options=
  [ $level != raid0 ] && options="--assume-clean --bitmap=none"
  [ $chunk != - ] && options="$options --chunk=$chunk"
  [ $layout != - ] && options="$options --layout=$layout"
  [ $size != - ] && options="$options --size=$size"
  mdadm --create /dev/md0 --run --force --metadata=1.0 --level=$level $options --raid-devices=$members $disks > "$work/log-$name" 2>&1 || { echo "refused $name: $(tail -1 "$work/log-$name")"; continue; }
  # What the kernel itself says it runs, so that no name is taken on trust.
  echo "$name $(cat /sys/block/md0/md/level) $(cat /sys/block/md0/md/layout) $(cat /sys/block/md0/md/chunk_size) $(cat /sys/block/md0/md/raid_disks)" >> "$work/seen"
  dd if="$work/content" of=/dev/md0 bs=$write_bytes count=1 iflag=fullblock oflag=direct conv=fsync status=none || echo "write failed: $name"
  if [ $rewrite != - ]; then
    mdadm --stop /dev/md0 >> "$work/log-$name" 2>&1
    mdadm --assemble --run /dev/md0 $disks >> "$work/log-$name" 2>&1 || echo "not assembled again: $name"
    before=$(for disk in $disks; do cat /sys/block/${disk#/dev/}/stat; done | awk '{ r += $3; w += $7 } END { print r, w }')
    while read -r source target count; do
      dd if="$work/content-rewrite" of=/dev/md0 bs=$((count * 4096)) count=1 skip=$((source * 4096)) seek=$((target * 4096)) iflag=skip_bytes oflag=direct,seek_bytes conv=notrunc status=none || echo "rewrite failed: $name"
    done < "$work/$rewrite"
    after=$(for disk in $disks; do cat /sys/block/${disk#/dev/}/stat; done | awk '{ r += $3; w += $7 } END { print r, w }')
    echo "$name $before $after" >> "$work/rewrite-sectors"
  fi
  mdadm --stop /dev/md0 >> "$work/log-$name" 2>&1 || echo "not stopped: $name"
  for disk in $disks; do dd if=$disk bs=$dump_bytes count=1 iflag=direct,fullblock status=none; done > "$work/dump-$name"
done
exec 3<&-
