# Run by boot.sh: records what /sys and /proc/mdstat say of real md arrays, one file a state; ARG: OUTPUT_DIR (an absolute path)
# Each line is PATH=VALUE; a file of several lines has one of these for each. Only what a kernel lets anybody read is recorded.
out=$1
mkdir -p "$out"
DISKS=$(echo $DISKS)
set -- $DISKS
a=$1 b=$2 c=$3 d=$4 e=$5 f=$6
slowly() { for limit in /sys/block/md*/md/sync_speed_max; do echo 64 > "$limit"; done 2>/dev/null; for limit in /sys/block/md*/md/sync_speed_min; do echo 1 > "$limit"; done 2>/dev/null; }
# Whatever resyncs is to be seen doing so.
echo 64 > /proc/sys/dev/raid/speed_limit_max; echo 1 > /proc/sys/dev/raid/speed_limit_min

record() { # NAME [ARRAY ...]: what sysfs has of these arrays (md0), and all of mdstat
  name=$1; shift
  [ $# -gt 0 ] || set -- md0
  file=$out/$name.txt
  : > "$file"
  for array; do
    here=/sys/block/$array
    [ -d "$here/md" ] || { echo "lab: $name: no $array"; rm -f "$file"; return; }
    # Links to members (rd0) say the same again; what cannot be read in this state is left out.
    grep -aH '' "$here/size" "$here/ro" $(find "$here/md/" -maxdepth 2 -type f -perm -444 | sort) 2>/dev/null | sed 's|^/||; s|:|=|' >> "$file"
    for one in "$here"/slaves/*; do [ -e "$one" ] && echo "${one#/}=" >> "$file"; done
  done
  # Only the arrays recorded: the lab has no others.
  sed 's|^|proc/mdstat=|' /proc/mdstat >> "$file"
  echo "lab: $name: $(sed -n '2,3p' /proc/mdstat | tr -s ' \n' ' ')"
}
make() { mdadm --create /dev/md0 --run --force --quiet "$@" 2>&1 | grep -v -e 'started' -e 'Defaulting' -e 'partition table' ; }
clean() { make "$@" --assume-clean; }
gone() {
  for array in /sys/block/md*; do [ -e "$array" ] && { echo idle > $array/md/sync_action; mdadm --stop /dev/${array##*/}; } 2>/dev/null >/dev/null; done
  for array in /sys/block/md*; do [ -e "$array" ] && echo clear > "$array/md/array_state"; done 2>/dev/null
  mdadm --zero-superblock $DISKS >/dev/null 2>&1
  for disk in $DISKS; do dd if=/dev/zero of=$disk bs=1M count=2 status=none; done
}
moment() { sleep "${1:-0.3}"; }

make --level=linear -n 2 $a $b; record linear; gone
make --level=0 --chunk=64 -n 4 $a $b $c $d; record raid0-chunk64k; gone
make --level=0 --chunk=512 --metadata=1.0 -n 2 $a $b; record raid0-chunk512k-metadata1.0; gone

clean --level=1 --bitmap=none -n 2 $a $b; record raid1-clean; mdadm --readonly /dev/md0; record raid1-read-only; gone
clean --level=1 --bitmap=internal -n 3 $a $b $c; record raid1-three-copies-bitmap; gone
clean --level=1 --bitmap=none --metadata=0.90 -n 2 $a $b; record raid1-metadata0.90; gone
clean --level=1 --bitmap=none --metadata=1.1 -n 2 $a $b; record raid1-metadata1.1; gone
clean --level=1 --bitmap=internal -n 2 $a --write-mostly $b; record raid1-write-mostly; gone
clean --level=1 --bitmap=none -n 2 $a missing; record raid1-degraded-from-the-start; gone
clean --level=1 --bitmap=none -n 2 -x 1 $a $b $c; record raid1-spare; gone
clean --level=1 --bitmap=none -n 2 $a $b; mdadm --quiet --fail /dev/md0 $b; record raid1-faulty; mdadm --quiet --remove /dev/md0 $b; record raid1-removed
slowly; mdadm --quiet --add /dev/md0 $c; moment; record raid1-recovering; gone
make --level=1 --bitmap=none -n 2 $a $b; moment; record raid1-resyncing; echo idle > /sys/block/md0/md/sync_action; gone
make --level=1 --bitmap=none -n 2 $a $b; echo frozen > /sys/block/md0/md/sync_action; moment; record raid1-frozen; gone
clean --level=1 --bitmap=none -n 2 $a $b; slowly; echo check > /sys/block/md0/md/sync_action; moment; record raid1-checking; gone
clean --level=1 --bitmap=none -n 2 $a $b; slowly; echo repair > /sys/block/md0/md/sync_action; moment; record raid1-repairing; gone
make --level=1 --bitmap=none -n 2 $a $b; mdadm --quiet --stop /dev/md0; echo 1 > /sys/module/md_mod/parameters/start_ro; mdadm --quiet --assemble /dev/md0 $a $b; record raid1-read-auto-resync-pending; echo 0 > /sys/module/md_mod/parameters/start_ro; gone

clean --level=4 --bitmap=none --chunk=64 -n 4 $a $b $c $d; record raid4-clean; gone
for layout in left-asymmetric right-asymmetric left-symmetric right-symmetric parity-first parity-last; do
  clean --level=5 --bitmap=none --chunk=64 --layout=$layout -n 5 $a $b $c $d $e; record raid5-$layout; gone
done
clean --level=5 --bitmap=internal --chunk=4 --metadata=1.0 -n 3 $a $b $c; record raid5-chunk4k-bitmap-metadata1.0; gone
clean --level=5 --bitmap=none --chunk=512 --metadata=0.90 -n 3 $a $b $c; record raid5-chunk512k-metadata0.90; gone
clean --level=5 --bitmap=none --chunk=64 -n 4 $a $b $c $d; dd if=/dev/zero of=/dev/md0 bs=64k count=4 oflag=direct status=none; cat /sys/block/md0/md/array_state; record raid5-active
mdadm --quiet --fail /dev/md0 $b; record raid5-faulty; mdadm --quiet --remove /dev/md0 $b; record raid5-degraded
slowly; mdadm --quiet --add /dev/md0 $e; moment; record raid5-recovering
mdadm --quiet --fail /dev/md0 $c; moment; record raid5-two-failed; gone
make --level=5 --bitmap=internal --chunk=64 -n 4 $a $b $c $d; moment; record raid5-resyncing-bitmap; gone
clean --level=5 --bitmap=none --chunk=64 -n 3 -x 1 $a $b $c $d; record raid5-spare
slowly; mdadm --quiet --replace /dev/md0 $b --with $d; moment; record raid5-replacing; gone
clean --level=5 --chunk=64 -n 3 --write-journal $d $a $b $c; record raid5-journal; mdadm --quiet --fail /dev/md0 $d; moment; record raid5-journal-failed; gone
clean --level=5 --chunk=64 --consistency-policy=ppl -n 3 $a $b $c; record raid5-ppl; gone
clean --level=5 --bitmap=none --chunk=64 -n 3 $a $b $c; mdadm --quiet --add /dev/md0 $d; slowly; (mdadm --quiet --grow /dev/md0 -n 4 2>&1 &) ; moment 1; slowly; moment 1; record raid5-reshaping; gone

clean --level=6 --bitmap=none --chunk=64 -n 6 $DISKS; record raid6-clean
mdadm --quiet --fail /dev/md0 $b; record raid6-one-failed; mdadm --quiet --fail /dev/md0 $c; record raid6-two-failed; mdadm --quiet --remove /dev/md0 $b $c; record raid6-two-removed
slowly; mdadm --zero-superblock $b; mdadm --quiet --add /dev/md0 $b; moment; record raid6-recovering-one-of-two; gone
clean --level=6 --bitmap=internal --chunk=512 -n 4 $a $b $c $d; slowly; echo check > /sys/block/md0/md/sync_action; moment; record raid6-checking-bitmap; gone
make --level=6 --bitmap=none --chunk=64 -n 4 $a $b $c $d; moment; record raid6-resyncing; gone

for layout in n2 f2 o2 n3; do clean --level=10 --bitmap=none --chunk=64 --layout=$layout -n 6 $DISKS; record raid10-$layout; gone; done
clean --level=10 --bitmap=none --chunk=256 --layout=n2 -n 5 $a $b $c $d $e; record raid10-n2-odd; gone
clean --level=10 --bitmap=internal --chunk=64 --layout=n2 -n 4 $a $b $c $d; mdadm --quiet --fail /dev/md0 $b; mdadm --quiet --remove /dev/md0 $b; record raid10-degraded-bitmap
slowly; mdadm --zero-superblock $b; mdadm --quiet --add /dev/md0 $b; moment; record raid10-recovering; gone
make --level=10 --bitmap=none --chunk=64 --layout=f2 -n 4 $a $b $c $d; moment; record raid10-resyncing; gone
clean --level=10 --bitmap=none --chunk=64 --layout=n2 -n 4 $a $b $c $d; mdadm --quiet --fail /dev/md0 $a; mdadm --quiet --fail /dev/md0 $b; record raid10-broken; gone

clean --level=5 --bitmap=none --chunk=64 -n 4 $a $b $c $d; mdadm --quiet --stop /dev/md0
mdadm --quiet --incremental $a >/dev/null 2>&1; for one in /sys/block/md*; do array=${one##*/}; done; record raid5-inactive-one-of-four $array; gone
make --level=1 --bitmap=none -n 2 $a $b; mdadm --quiet --stop /dev/md0 2>/dev/null; echo idle; gone
clean --level=1 --bitmap=none -n 2 $a $b; mdadm --create /dev/md1 --run --force --quiet --assume-clean --level=0 --chunk=64 -n 2 $c $d 2>&1; record raid1-beside-raid0 md0 md1; gone
clean --level=1 --bitmap=none -n 2 $a $b; echo 0 > /sys/block/md0/md/suspend_lo; echo 2048 > /sys/block/md0/md/suspend_hi; record raid1-partly-suspended; echo 0 > /sys/block/md0/md/suspend_hi; gone
