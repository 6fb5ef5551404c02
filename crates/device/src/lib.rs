//! Sans-IO device models (hdd, fixed, empirical) and disk schedulers.
