# Run by boot.sh for probe.py: one test of each of several arrays of real md, over the exact disks; ARG: WORK_DIR
# WORK_DIR/plan has one test a line: NAME LEVEL CHUNK_KIB LAYOUT MEMBERS r|w DEPTH REQUESTS WARM_UP BLOCK_BYTES   (- where there is none); its offsets are in
# WORK_DIR/given-NAME. A line with 0 REQUESTS asks how large the array is.
# WORK_DIR/results receives one line a test: NAME, and what loadgen says or size_bytes=. Every test has an array of its own, with nothing on its disks.
work=$1
exec 3< "$work/plan"
while read -r name level chunk layout members op depth requests warm_up block <&3; do
  disks=$(echo $DISKS | cut -d' ' -f1-$members)
  for disk in $disks; do echo 0 > /sys/kernel/config/nullb/${disk#/dev/}/power; power_on ${disk#/dev/nullb}; done
  options=
  [ $level != raid0 ] && options="--assume-clean --bitmap=none"
  [ $chunk != - ] && options="$options --chunk=$chunk"
  [ $layout != - ] && options="$options --layout=$layout"
  mdadm --create /dev/md0 --run --force --metadata=1.0 --level=$level $options --raid-devices=$members $disks > "$work/log" 2>&1 || { echo "refused $name: $(tail -1 "$work/log")"; continue; }
  if [ $requests = 0 ]; then
    echo "$name size_bytes=$(blockdev --getsize64 /dev/md0)" >> "$work/results"
  else
    line=$("$LAB/loadgen" /dev/md0 $op $depth $requests 0 $block 1 - $block "$work/given-$name" $warm_up) || echo "not run: $name"
    echo "$name $line" >> "$work/results"
  fi
  mdadm --stop /dev/md0 >> "$work/log" 2>&1 || echo "not stopped: $name"
done
exec 3<&-
