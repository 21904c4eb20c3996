package policy

// Limit says how many lines of code a part of the repository may have, without blank
// lines, comments and tests.
type Limit struct {
	Part   string // a pattern of names as command size prints them
	Lines  int
	Reason string
}

// Limits lists all limits. The first whose pattern matches counts.
var Limits = []Limit{
	{"core", 8100, "a maintainer has to know the whole root package; the goal is 7,300, which waits, groups and gates have outgrown"},
	{"core/...", 13250, "every user downloads all of core; the goal is 12,300, as for its root"},
	{"atoms/...", 8500, "the 13 atoms are small pieces over core: code that several need belongs in core"},
	{"atoms/ratelimit/...", 1700, "three limiters share one bucket, and keys may be millions"},
	{"atoms/slidingcache/...", 900, "it is a loader over core/lru"},
	{"atoms/batching/...", 1000, "it is a buffer with three limits in front of a coordinator, and splits failed batches"},
	{"atoms/waveorchestrator/...", 1050, "waves, a breaker and early exit"},
	{"atoms/molecules/...", 950, "runs, steps, compensation and triggers"},
	{"atoms/priorityprocessor/...", 850, "failover, probes and routes"},
	{"atoms/retry/...", 700, "a retrier, a queue of retries and a budget"},
	{"atoms/*/...", 600, "an atom is read in one sitting"},
	{"patterns/*/...", 150, "a pattern shows how to use core in a few lines"},
	{"scripts/...", 3000, "tools must not be more work than what they check"},
	{"tests", 46000, "a promise is tested once"},
}

// LimitOf returns the limit of a part. If there is none, its Lines are 0.
func LimitOf(part string) Limit {
	for _, l := range Limits {
		if Matches(l.Part, part) {
			return l
		}
	}
	return Limit{}
}
