"""Many patients with stated distributions: spec, plan, store, executors, report, data-set exports."""
