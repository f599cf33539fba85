//! A refusal as a gRPC status.
