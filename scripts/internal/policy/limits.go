package policy

// Limit says how many lines of code a part of the repository may have, without blank
// lines, comments and tests.
type Limit struct {
	Part   string // a pattern of names as command size prints them
	Lines  int
	Tests  bool // there may be at most 1.5 lines of tests for a line of code
	Reason string
}

// Limits lists all limits. The first whose pattern matches counts.
var Limits = []Limit{
	{Part: "core", Lines: 8100, Reason: "a maintainer has to know the whole root package; the goal is 7,300, which waits, groups and gates have outgrown"},
	{Part: "core/...", Lines: 13250, Reason: "every user downloads all of core; the goal is 12,300, as for its root"},
	{Part: "atoms/...", Lines: 8500, Reason: "the 13 atoms are small pieces over core: code that several need belongs in core"},
	{Part: "atoms/ratelimit/...", Lines: 1700, Reason: "three limiters share one bucket, and keys may be millions"},
	{Part: "atoms/slidingcache/...", Lines: 900, Reason: "it is a loader over core/lru"},
	{Part: "atoms/batching/...", Lines: 1000, Reason: "it is a buffer with three limits in front of a coordinator, and splits failed batches"},
	{Part: "atoms/waveorchestrator/...", Lines: 1050, Reason: "waves, a breaker and early exit"},
	{Part: "atoms/molecules/...", Lines: 950, Reason: "runs, steps, compensation and triggers"},
	{Part: "atoms/priorityprocessor/...", Lines: 850, Reason: "failover, probes and routes"},
	{Part: "atoms/retry/...", Lines: 700, Reason: "a retrier, a queue of retries and a budget"},
	{Part: "atoms/data/...", Lines: 1950, Reason: "the store, the suite for engines, and three engines"},
	{Part: "atoms/data/postgres/...", Lines: 600, Tests: true, Reason: "group commit, two types of columns, queries and reconnecting"},
	{Part: "atoms/data/sqlite/...", Lines: 250, Tests: true, Reason: "atoms/sqlitewriter does the work"},
	{Part: "atoms/data/*/...", Lines: 350, Tests: true, Reason: "an engine keeps bytes; the store does the rest"},
	{Part: "atoms/*/...", Lines: 600, Reason: "an atom is read in one sitting"},
	{Part: "patterns/persistentwindow/...", Lines: 300, Tests: true, Reason: "a schema, flushes, pruning and loading"},
	{Part: "patterns/dynamicworkflow/...", Lines: 300, Tests: true, Reason: "five ways to choose a route, and a rule for concurrency"},
	{Part: "patterns/logging/...", Lines: 250, Tests: true, Reason: "two directions, and the contract of slog.Handler"},
	{Part: "patterns/telemetry/...", Lines: 250, Tests: true, Reason: "spans and metrics"},
	{Part: "patterns/signalinghttp/...", Lines: 250, Tests: true, Reason: "a client and a server"},
	{Part: "patterns/*/...", Lines: 150, Tests: true, Reason: "a pattern shows how to use core in a few lines"},
	{Part: "scripts/...", Lines: 3000, Reason: "tools must not be more work than what they check"},
	{Part: "tests", Lines: 46000, Reason: "a promise is tested once"},
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
