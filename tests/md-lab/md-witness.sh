# Run by boot.sh for witness.py: real md over the exact disks, one closed loop after another; ARG: WORK_DIR
# WORK_DIR/plan has one run a line: NAME LEVEL CHUNK_KIB MEMBERS r|w DEPTH REQUESTS SPAN_MIB SEED   (CHUNK_KIB - where there is none)
# WORK_DIR/results receives one line a run: NAME, what loadgen says, and what the members served meanwhile (member_reads=, member_writes=).
# WORK_DIR/addresses-NAME receives the offsets in order of submission. Every run has an array of its own, with nothing in md's caches.
work=$1
{ echo "kernel $(uname -r)"; mdadm --version 2>&1; } > "$work/versions"
served() { for disk in $disks; do cat /sys/block/${disk#/dev/}/stat; done | awk '{ r += $1; w += $5 } END { print r, w }'; }
exec 3< "$work/plan"
while read -r name level chunk members op depth requests span seed <&3; do
  disks=$(echo $DISKS | cut -d' ' -f1-$members)
  for disk in $disks; do mdadm --zero-superblock --force $disk 2>/dev/null; done
  options=
  [ $level != raid0 ] && options="--assume-clean --bitmap=none"
  [ $chunk != - ] && options="$options --chunk=$chunk"
  mdadm --create /dev/md0 --run --force --metadata=1.0 --level=$level $options --raid-devices=$members $disks > "$work/log" 2>&1 || { echo "refused $name: $(tail -1 "$work/log")"; continue; }
  before=$(served)
  line=$("$LAB/loadgen" /dev/md0 $op $depth $requests $span 4096 $seed "$work/addresses-$name") || { echo "not run: $name"; continue; }
  after=$(served)
  echo "$name $line $(echo $before $after | awk '{ print "member_reads=" $3 - $1, "member_writes=" $4 - $2 }')" >> "$work/results"
  mdadm --stop /dev/md0 >> "$work/log" 2>&1 || echo "not stopped: $name"
done
exec 3<&-
