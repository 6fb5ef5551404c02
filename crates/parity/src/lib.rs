//! XOR and P+Q parity kernels, recovery of one or two losses, chosen at run time.
