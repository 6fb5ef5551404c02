//! The sans-IO array: a tree of levels, request plans, and the state machine that runs them.
