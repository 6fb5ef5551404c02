# Run by boot.sh for witness.py: real md over the exact disks, one closed loop after another; ARG: WORK_DIR
# WORK_DIR/plan has one run a line: NAME LEVEL CHUNK_KIB LAYOUT MEMBERS r|w|READ_PERCENT DEPTH REQUESTS SPAN_MIB SEED BLOCK_BYTES ALIGN_BYTES MISSING   (- where there is
# none; MISSING: the numbers of members that fail first, with commas between)
# WORK_DIR/results receives one line a run: NAME, what loadgen says, and what the members served meanwhile (member_reads=, member_writes=, and
# member_read_bytes=, member_write_bytes=).
# WORK_DIR/addresses-NAME receives the offsets in order of submission. Every run has an array of its own, with nothing in md's caches.
work=$1
{ echo "kernel $(uname -r)"; mdadm --version 2>&1; } > "$work/versions"
served() { for disk in $disks; do cat /sys/block/${disk#/dev/}/stat; done | awk '{ r += $1; w += $5; rs += $3; ws += $7 } END { printf "%d %d %.0f %.0f\n", r, w, rs * 512, ws * 512 }'; }
exec 3< "$work/plan"
while read -r name level chunk layout members op depth requests span seed block align missing <&3; do
  disks=$(echo $DISKS | cut -d' ' -f1-$members)
  for disk in $disks; do mdadm --zero-superblock --force $disk 2>/dev/null; done
  options=
  case $level in raid0 | linear) ;; *) options="--assume-clean --bitmap=none" ;; esac
  [ $chunk != - ] && options="$options --chunk=$chunk"
  [ $layout != - ] && options="$options --layout=$layout"
  mdadm --create /dev/md0 --run --force --metadata=1.0 --level=$level $options --raid-devices=$members $disks > "$work/log" 2>&1 || { echo "refused $name: $(tail -1 "$work/log")"; continue; }
  for number in $(echo $missing | tr -d - | tr , ' '); do
    disk=$(echo $disks | cut -d' ' -f$((number + 1)))
    mdadm --quiet --fail /dev/md0 $disk && mdadm --quiet --remove /dev/md0 $disk || echo "not removed: $name"
  done
  before=$(served)
  line=$("$LAB/loadgen" /dev/md0 $op $depth $requests $span $block $seed "$work/addresses-$name" $align) || { echo "not run: $name"; continue; }
  after=$(served)
  echo "$name $line $(echo $before $after | awk '{ printf "member_reads=%d member_writes=%d member_read_bytes=%.0f member_write_bytes=%.0f\n", $5 - $1, $6 - $2, $7 - $3, $8 - $4 }')" >> "$work/results"
  mdadm --stop /dev/md0 >> "$work/log" 2>&1 || echo "not stopped: $name"
done
exec 3<&-
