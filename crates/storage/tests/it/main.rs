//! Storage from outside.
