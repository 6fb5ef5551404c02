# Run by boot.sh for witness_tasks.py: real md rebuilds, resyncs or checks arrays over the exact disks, idle or beside a closed loop; ARG: WORK_DIR
# WORK_DIR/plan has one run a line: NAME LEVEL CHUNK_KIB MEMBERS MEMBER_KIB TASK OPERATION DEPTH SPAN_MIB SEED   (- where there is none; DEPTH 0: idle)
# TASK: recover (member 0 is taken out, a spare added), resync (of a new array), check. OPERATION: r or w, 4 KiB at random.
# WORK_DIR/results receives one line a run: NAME, seconds= from the moment at which the kernel says it is at work to that at which it says idle, requests=
# of the foreground meanwhile, then for each member that is in the array RECOVERED_OR_-:READS:READ_BYTES:WRITES:WRITE_BYTES meanwhile.
work=$1
{ echo "kernel $(uname -r)"; mdadm --version 2>&1; } > "$work/versions"
served() { for disk in $inside; do cat /sys/block/${disk#/dev/}/stat; done | awk '{ print $1, $3 * 512, $5, $7 * 512 }'; }
asked() { awk '{ print $1 + $5 }' /sys/block/md0/stat; }
does() { cat /sys/block/md0/md/sync_action 2>/dev/null || echo none; }
now() { date +%s.%N; }
create() { mdadm --create /dev/md0 --run --force --metadata=1.0 --level=$level --bitmap=none $options --size=$size --raid-devices=$members $disks >> "$work/log" 2>&1 || echo "refused $name"; }
exec 3< "$work/plan"
while read -r name level chunk members size task operation depth span seed <&3; do
  disks=$(echo $DISKS | cut -d' ' -f1-$members) first=$(echo $DISKS | cut -d' ' -f1) spare=$(echo $DISKS | cut -d' ' -f$((members + 1)))
  inside=$disks load= step=0.005
  for disk in $disks $spare; do mdadm --zero-superblock --force $disk 2>/dev/null; dd if=/dev/zero of=$disk bs=1M count=$((size / 1024)) oflag=direct status=none; done
  options=
  [ $chunk != - ] && options="--chunk=$chunk"
  [ $task != resync ] && { options="$options --assume-clean"; create; }
  if [ $task = recover ]; then
    mdadm --quiet --fail /dev/md0 $first 2>> "$work/log" && mdadm --quiet --remove /dev/md0 $first 2>> "$work/log" || echo "not removed: $name"
    inside="$spare $(echo $disks | cut -d' ' -f2-)"
  fi
  if [ $depth != 0 ]; then
    "$LAB/loadgen" /dev/md0 $operation $depth 1000000 $span 4096 $seed >> "$work/log" 2>&1 & load=$!
    sleep 1; step=0.05
  fi
  case $task in
    recover) mdadm --quiet --add /dev/md0 $spare >> "$work/log" 2>&1 & ;;
    resync) create & ;;
    check) echo check > /sys/block/md0/md/sync_action ;;
  esac
  tries=0
  while case $(does) in idle | none) [ $tries -lt 2000 ] ;; *) false ;; esac; do sleep 0.001; tries=$((tries + 1)); done
  begun=$(now) before=$(served) asked_before=$(asked)
  [ $tries -lt 2000 ] || echo "not begun: $name"
  # By one process and one open file: others would take pages of memory meanwhile, and md's come to lie otherwise.
  [ $depth = 0 ] && perl -e 'open S, "<", $ARGV[0]; do { select undef, undef, undef, $ARGV[1]; sysseek S, 0, 0; sysread S, $_, 9 } until /^idle/' /sys/block/md0/md/sync_action $step
  while [ "$(does)" != idle ]; do sleep $step; done
  ended=$(now) after=$(served) asked_after=$(asked)
  [ -n "$load" ] && { kill $load; wait $load 2>/dev/null; }
  { echo "$before" | tr '\n' ' '; echo; echo "$after" | tr '\n' ' '; echo; } | awk -v name=$name -v seconds=$(echo $begun $ended | awk '{ printf "%.4f", $2 - $1 }') -v requests=$((asked_after - asked_before)) '
    NR == 1 { for (i = 1; i <= NF; i++) was[i] = $i }
    NR == 2 { printf "%s seconds=%s requests=%d members=", name, seconds, requests
      for (i = 1; i <= NF; i++) printf "%.0f%s", $i - was[i], i == NF ? "\n" : i % 4 ? ":" : "," }' >> "$work/results"
  sleep 0.2
  mdadm --stop /dev/md0 >> "$work/log" 2>&1 || echo "not stopped: $name"
done
exec 3<&-
