package policy

// Word is an expression that texts of the repository do not use.
type Word struct {
	Stem    string // a part of every match; texts without it are skipped quickly
	Pattern string // a regular expression for text in lower case; a blank is any white space
	Instead string
}

// Words lists the expressions. No pattern matches itself. CHANGELOG.md may quote old names
// as code.
var Words = []Word{
	{"who", `(?:\A|[.:;(|*!?]\s+|\n\s*\n\s*|- )who (?:are|have|had|[a-z]+s)\b`, `begin with the noun: "a caller that ..."`},
	{"who", `\b(?:those|of|by|to|for|than) who (?:are|have|had|[a-z]+s?)\b`, `the noun: "callers that ..."`},
	{"hee", `\bheed(?:s|ed|ing)?\b`, "follow, obey, take into account"},
	{"dea", `\bdear\b`, "expensive"},
	{"les", `\blest\b`, "so that ... not"},
	{"be", `\bbe it\b`, "whether it is"},
	{"whatever", `\bwhatever becomes\b`, "in every case"},
	{"cut", `\bas one cut\b`, "atomically, consistently"},
	{"told", `\btold of\b`, "notified, informed about"},
	{"tell", `\btells? of\b`, "reports, says"},
	{"hear", `\bhear(?:d|s)? of\b`, "learn, receive, is notified of"},
	{"dea", `\bdeaf\b`, "does not listen, ignores"},
	{"fores", `\bforesee(?:s|n|ing)?\b`, "expect, predict"},
	{"henc", `\bhence\b`, "so, therefore"},
	{"thereo", `\bthereof\b`, "of it"},
	{"whenc", `\bwhence\b`, "from where"},
	{"thu", `\bthus\b`, "so"},
	{"ane", `\banew\b`, "again"},
	{"nobody", `\bnobody wants\b`, "unused, not needed"},
	{"weak", `\bweak point [0-9]`, "the fault itself: the cited document is not in the repository"},
	{"lot", `\b(?:the|each|every|this|that|per|next|its|same|one|whole|first|last|full|another|two) lots?\b`, "batch"},
}

// OptionNames are names of options that are not used, with the names that are used instead.
var OptionNames = map[string]string{
	"MaxWaiting":    "MaxQueued",
	"MaxPending":    "MaxQueued",
	"MaxWaiters":    "MaxQueued",
	"MaxQueue":      "MaxQueued",
	"QueueSize":     "MaxQueued",
	"QueueCapacity": "MaxQueued",
	"MaxOperations": "MaxQueued",
	"MaxKeys":       "Capacity",
	"MaxEntries":    "Capacity",
	"NoControl":     "IgnoreCommands",
}

// SignalStates are allowed last words of names of signals, beside words in -ed: other past
// tenses, and states.
var SignalStates = []string{
	"healthy", "unhealthy", "stale", "unsent", "hot", "cold", "kept", "open", "half_open", "progress", "hit", "miss", "lost", "begun", "timeout", "absent", "free", "stuck", "alone", "duplicate", "would_throttle", "would_open", "stray",
}

// Exception is a name that may break a rule of package arch.
type Exception struct{ Rule, Name, Reason string }

// Exceptions lists the exceptions. TestRepository of package arch reports exceptions that are
// not needed.
var Exceptions = []Exception{
	{"errors", "core/whatif/main/main.go", "it is the command of package whatif, whose name stands in front"},
	{"errors", "core/whatif/trace.go", "Read puts the package in front"},
	{"options", "signals.ScopeOptions", "two functions: there is nothing to resolve"},
	{"options", "core.GroupOptions", "one boolean: there is nothing to resolve"},
	{"errors", "atoms/molecules/blueprint.go", "New and Run put the package and the blueprint in front"},
	{"errors", "atoms/molecules/execution.go", "StepError puts the package and the step in front"},
	{"signal names", "job.retry", "the attribute jobs of the original name it"},
	{"signal names", "stage.start", "signals.md, complete.md and readme.md of the original name it"},
	{"signal names", "stage.complete", "signals.md and complete.md of the original name it"},
	{"signal names", "stage.starting", "signals.md and complete.md of the original name it"},
	{"signal names", "stage.request", "signals.md and complete.md of the original name it"},
	{"signal names", "stage.headers", "signals.md and complete.md of the original name it"},
	{"signal names", "stage.reading", "signals.md and complete.md of the original name it"},
	{"signal names", "http.error", "signals.md of the original names it"},
	{"signal names", "processing.complete", "advanced-patterns.md of the original names it"},
	{"signal names", "restore.primary", "advanced-patterns.md of the original names it"},
	{"signal names", "write.start", "the single writer of the original names it"},
	{"signal names", "write.done", "the single writer of the original names it"},
	{"signal names", "write.error", "the single writer of the original names it"},
	{"signal names", "window.load.done", "the persistent window of the original names it"},
	{"signal names", "window.flush.done", "the persistent window of the original names it"},
	{"signal names", "window.flush.error", "the persistent window of the original names it"},
	{"signal names", "update.in-progress", "complete.md of the original names it, and gates with a hyphen work like any"},
	{"signal names", "update.done", "complete.md of the original names it"},
	{"signal names", "read.waiting", "it is a state"},
	{"signal names", "stage.done", "complete.md of the original names it"},
	{"signal names", "wave.early_exit", "waveorchestrator.md of the original names it"},
}
