package policy

// Room is how many percent a part may be larger than its goal. So a small change needs no new
// goal. For a larger change, first look for something to cut.
const Room = 5

// Limit says how many lines of code a part of the repository should have at most, without
// blank lines, comments and tests.
type Limit struct {
	Part   string // a pattern of names as command size prints them
	Lines  int    // 0: any
	Tests  int    // lines of tests for 100 lines of code; 0: any
	Reason string
}

// Limits lists all goals. The first whose pattern matches counts. A new module brings its own.
var Limits = []Limit{
	{Part: "core", Lines: 9660, Reason: "a maintainer has to know the whole root package; the goal was 7,300 before what patterns, jobs and the status page need, which is 570, and 450 for rates, which took 900; traces, times and stuck bodies are 150, relays 120, and the index on demand 450"},
	{Part: "core/...", Lines: 16000, Reason: "every user downloads all of core; the goal was 12,300 before group commits, file locks, shared breakers, what patterns, jobs and the status page need, and rates, which is 2,000, and the graph of waits and histograms, which is 500"},
	{Part: "atoms/...", Lines: 19730, Reason: "small pieces over core; storage, durable work and schedules have 10,600 of it, and facts across processes 1,130"},
	{Part: "atoms/ratelimit/...", Lines: 1510, Reason: "three limiters, and keys may be millions; the bucket is core/bucket"},
	{Part: "atoms/slidingcache/...", Lines: 805, Reason: "it is a loader over core/lru"},
	{Part: "atoms/batching/...", Lines: 900, Reason: "it is a buffer with three limits in front of a coordinator, and splits failed batches"},
	{Part: "atoms/waveorchestrator/...", Lines: 990, Reason: "waves, a breaker and early exit"},
	{Part: "atoms/molecules/...", Lines: 835, Reason: "runs, steps, compensation and triggers"},
	{Part: "atoms/priorityprocessor/...", Lines: 850, Reason: "failover, probes and routes"},
	{Part: "atoms/retry/...", Lines: 640, Reason: "a retrier, its wrappers and a budget"},
	{Part: "atoms/durable/...", Lines: 7180, Reason: "the queue, its store in memory and its suite for stores are 4,440, and each engine is its own; classes, lists, changes of many items, results and counters are 2,400 of all, and the goal for these was 700"},
	{Part: "atoms/durable/postgres/...", Lines: 1355, Reason: "a third of it is SQL: a turn is one function of the database, and migrations are built beside the work"},
	{Part: "atoms/durable/sqlite/...", Lines: 1205, Reason: "the same decisions, as statements over sets"},
	{Part: "atoms/scheduledtasks/...", Lines: 1020, Reason: "times of cron expressions, clocks that change, strict JSON, missed runs, hand-overs that are tried again, a store, and what became of the last firings; the goal is 600"},
	{Part: "atoms/mesh/...", Lines: 1130, Reason: "a protocol of six messages, the state of each node, flushes, limits and wakes, in 1,000, and a server; the goal was 850"},
	{Part: "atoms/mesh/embedded/...", Lines: 150, Tests: 500, Reason: "it sets options of a server; its tests are those of the mesh with real processes"},
	{Part: "atoms/scheduledtasks/...", Lines: 930, Reason: "times of cron expressions, clocks that change, strict JSON, missed runs, hand-overs that are tried again, and a store; the goal is 600"},
	{Part: "atoms/data/...", Lines: 2050, Reason: "the store, the suite for engines, and three engines"},
	{Part: "atoms/data/postgres/...", Lines: 610, Reason: "group commit, two types of columns, queries and reconnecting"},
	{Part: "atoms/data/sqlite/...", Lines: 250, Tests: 150, Reason: "atoms/sqlitewriter does the work"},
	{Part: "atoms/data/file/...", Lines: 380, Reason: "names, records, locks, and what makes a directory durable; its tests have a disk that loses power"},
	{Part: "atoms/sqlitewriter/...", Lines: 838, Reason: "transactions, turns of processes, sharing of files, cached reads and backups; waits for other programs have one bound, and callers can leave them"},
	{Part: "atoms/data/*/...", Lines: 350, Tests: 150, Reason: "an engine keeps bytes; the store does the rest"},
	{Part: "atoms/hedge/...", Lines: 340, Tests: 150, Reason: "second attempts with a budget, a quantile and a pause; the goal was 200"},
	{Part: "atoms/*/...", Lines: 600, Reason: "an atom is read in one sitting"},
	{Part: "patterns/circuitbreaker/...", Lines: 182, Reason: "a pattern shows how to use core in a few lines; 32 are for the signals of its changes, each with a reason"},
	{Part: "patterns/jobs/...", Lines: 700, Reason: "twenty options of a job, awaits in order, checks of all jobs and a drawing; the goal is 500"},
	{Part: "patterns/fxmodule/...", Lines: 120, Reason: "a module for one container; its tests start applications"},
	{Part: "patterns/statuspage/...", Lines: 1900, Reason: "twelve views, sixteen actions, a search, groups of errors, shared streams, guards and ready views; the page is extra; the first goal was 800"},
	{Part: "patterns/persistentwindow/...", Lines: 410, Tests: 150, Reason: "a schema, flushes, pruning, retractions and loading; the goal is 300"},
	{Part: "patterns/dynamicworkflow/...", Lines: 310, Tests: 150, Reason: "five ways to choose a route, and a rule for concurrency"},
	{Part: "patterns/logging/...", Lines: 267, Tests: 150, Reason: "two directions, levels from the words of a name, and the contract of slog.Handler"},
	{Part: "patterns/telemetry/...", Lines: 342, Tests: 150, Reason: "spans, and metrics of everything that has Stats"},
	{Part: "patterns/signalinghttp/...", Lines: 264, Tests: 150, Reason: "a client and a server"},
	{Part: "patterns/*/...", Lines: 150, Tests: 150, Reason: "a pattern shows how to use core in a few lines"},
	{Part: "cmd/ephemeral/...", Lines: 3105, Reason: "a flow of texts, a table of roles, twelve checks and a map, which are 2,450, and a terminal view of 680, which has all views and most actions of the status page; the goal was 2,600, with 350 for the view"},
	{Part: "examples/...", Lines: 640, Reason: "five programs of at most 150 lines, comments included"},
	{Part: "scripts/...", Lines: 7320, Reason: "tools must not be more work than what they check: 4,600 for all but scripts/chaos, which has two engines, mutants and old programs; 340 make the table of directives, and 400 make a release in a copy and bills of materials"},
	{Part: "...", Tests: 125, Reason: "a promise is tested once"},
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
