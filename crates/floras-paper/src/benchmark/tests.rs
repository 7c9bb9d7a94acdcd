//! Tests of the benchmark.
