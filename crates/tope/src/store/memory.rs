//! A bounded table in this process.
