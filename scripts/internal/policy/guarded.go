package policy

// Guarded are the directories, with all below them, in which code calls methods of errors only by
// package core/guard. Unguarded are directories below them with other code: guard itself, and tests.
var (
	Guarded   = []string{"core"}
	Unguarded = []string{"core/guard", "core/coretest"}
)
