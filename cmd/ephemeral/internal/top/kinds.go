package top

// A kind of things that views show. The names of columns and fields are those of the JSON of
// the page, so a new field needs one word here.
type kind struct {
	name    string
	path    string // where the things are in the frame
	from    string // fields that they take from the object around them, as NAME=FIELD
	keys    int    // how many of the first columns tell one from all others
	columns string
	opens   string // the view that enter shows, with its parameters as NAME=FIELD
	actions []offer
}

// An offer is an action that a key asks for, with its fields as NAME=FIELD.
type offer struct{ key, action, ifPaused, fields string }

const operationColumns = "id coordinator status key lane class enqueued started waits progress"
const signalColumns = "name sink seq time key coordinator operation held"

var cancel = []offer{{"c", "cancel", "", "coordinator=coordinator operation=id"}}
var retract = []offer{{"t", "retract", "", "sink=sink signal=name"}}

// kinds lists what each view shows, in this order.
var kinds = map[string][]kind{
	"overview": {
		{
			"coordinator", "coordinators", "", 1,
			"id paused closed pending running suspended limit succeeded failed cancelled refused dropped throughput oldest error",
			"operations coordinator=id",
			[]offer{{"p", "pause", "resume", "coordinator=id"}, {"l", "limit", "", "coordinator=id"}},
		},
		{"lane", "coordinators.lanes", "coordinator=id", 2, "name coordinator pending running limit", "", nil},
		{"class", "coordinators.classes", "coordinator=id", 2, "name coordinator pending running limit next", "", nil},
		{"gate", "coordinators.gates", "", 5, "pattern coordinator kind lane class closed matches signal", "", nil},
		{
			"queue", "queues", "", 1, "name paused nodes oldestMs counts note error", "items queue=name",
			[]offer{{"p", "pauseQueue", "resumeQueue", "queue=name"}},
		},
		{
			"schedule", "schedules", "", 2, "name group paused last next when error", "",
			[]offer{{"p", "pauseSchedule", "resumeSchedule", "schedules=group schedule=name"}, {"r", "runNow", "", "schedules=group schedule=name"}},
		},
		{"sink", "sinks", "", 1, "name stored held capacity raised", "signals sink=name", nil},
	},
	"operations": {{"operation", "operations", "", 2, operationColumns, "operation coordinator=coordinator id=id", cancel}},
	"operation": {
		{"operation", "operation", "", 2, operationColumns, "", cancel},
		{"reason", "explanation.reasons", "", 2, "kind text since expires", "", nil},
		{"signal", "signals", "", 3, signalColumns, "", nil},
	},
	"signals": {
		{"held", "held", "sink=sink", 3, signalColumns, "", retract},
		{"signal", "signals", "sink=sink", 3, signalColumns, "", retract},
	},
	"items": {{
		"item", "items", "queue=queue", 2, "id queue state key lane class attempts enqueued runAt started ended node error note", "",
		[]offer{{"a", "again", "", "queue=queue item=id"}, {"d", "discard", "", "queue=queue item=id"}},
	}},
}

// parameters are sent with every request for a view. A page sends at most 200 things at once.
var parameters = map[string]string{
	"operations": "limit=200&status=pending,running,suspended&",
	"signals":    "limit=200&",
	"items":      "limit=200&",
}

// newestFirst are kinds whose list in the JSON begins with the oldest.
var newestFirst = map[string]bool{"signal": true}
