package policy

// Guarded are the directories, with all below them, in which code calls methods of errors only by
// package core/guard. Unguarded are directories below them with other code: guard itself, and tests, which
// also see the errors of the test only.
var (
	Guarded   = []string{"core", "atoms", "patterns"}
	Unguarded = []string{"core/guard", "core/coretest", "atoms/data/datatest", "atoms/durable/durabletest", "atoms/durable/flow/flowtest"}
)
