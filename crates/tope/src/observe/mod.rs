//! One record per judgement: what metrics, the access log and the dashboard are made from.
