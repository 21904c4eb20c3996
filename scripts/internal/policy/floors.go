package policy

// Floor is a part of the root package of core. Its files use names of this floor and of
// lower floors.
type Floor struct {
	Name   string
	Files  []string // without ".go", in the order of reading
	Reason string
}

// Floors are the floors of the root package of core, the lowest first. The file doc.go is on
// no floor.
var Floors = []Floor{
	{"text", []string{"pattern", "command", "errors", "rate", "tools", "clock", "queue", "spares", "text", "stack", "lifecycle", "hook", "sink_watchers"}, "helpers that know no signal and no operation"},
	{"facts", []string{"signal", "cause", "sink_ring", "sink_effects", "sink_gate", "raiser", "sink_index", "sink_routes", "sink_answers", "sink_names", "watermark", "sink_monitor", "sink_loop"}, "what a fact is, and where facts are kept and counted"},
	{"sink", []string{"sink_lookup", "sink_facts", "sink_hold", "sink_subscribe", "sink_forward", "sink_relay", "sink"}, "how facts come and go"},
	{"senses", []string{"sink_sense", "sink_retract", "sink_watch", "kind"}, "what users ask a sink"},
	{"data", []string{"lane", "class", "stats", "op_snapshot", "options", "explanation", "op_stuck", "op", "echoes", "engine_intake"}, "operations and what is next, without goroutines"},
	{"ledger", []string{"engine_ledger", "engine_condition"}, "the facts of operations, and the rules that facts decide"},
	{"loop", []string{"engine_group", "engine", "engine_effects", "engine_end", "engine_next", "engine_worker", "engine_flush", "engine_wait", "engine_ends", "engine_enqueue", "operation_context"}, "the machine that runs operations: one state machine over several files"},
	{"inspection", []string{"operation", "control", "control_inspect", "control_times", "control_explain"}, "what bodies and users ask while operations run"},
	{"life", []string{"control_lifecycle", "control_notices"}, "how a coordinator ends"},
	{"face", []string{"coordinator", "result", "group", "foreach", "map", "reaction", "dispatcher", "shutdown"}, "the types that users construct"},
}

// MaxKnot is the largest number of files of core's root package that may all reach each
// other by uses. MaxBack is how many percent of the arrows between files may lead to a
// file that is later in the order of reading.
const MaxKnot, MaxBack = 18, 8
