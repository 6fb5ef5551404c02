//! The sans-IO offered load: arrivals, sizes, addresses, tasks, load control, and the recorder.
