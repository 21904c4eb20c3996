package core

import "iter"

// Inspector is any coordinator, or what is built on one, whatever it carries: for
// status pages, and for programs that end many of them together.
type Inspector interface {
	Lifecycle
	Name() string
	Stats() Stats
	Operations(OperationQuery) iter.Seq[Snapshot]
	Lookup(OperationID) (Snapshot, bool)
	Explain(OperationID) (Explanation, bool)
}
