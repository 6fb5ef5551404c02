"""Machines that load a storage on the network together: agents, who drives them, a laboratory of network namespaces.

Invariants:

- Nothing listens unless somebody starts an agent, at an address that is named, with a key that is named.
- An agent only drives load: it writes and reads files of raidlab's own in the one place it was started for. It runs
  no command and opens no other path, whoever asks.
- What is made here (namespaces, links, servers, files) is taken away again, also after a failure.

Reference: I. Bird et al., *Evaluating RAID in the Real World*, Jefferson Lab, 1998 (the tests of network-attached
boxes).
"""
