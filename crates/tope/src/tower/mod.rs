//! The pass as a layer.
