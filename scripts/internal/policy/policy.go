// Package policy holds the rules of the repository as data: what kinds of modules there
// are, what each may use and must contain, how large each may be, and which words and
// names are used.
//
// Change the data only when the policy changes, with a reason beside it. Do not change it to make a test pass.
package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/scripts/internal/repo"
)

// GoVersion is what the go directive of every go.mod and of go.work says. A module may say
// this version with ".0" if a library requires that.
const GoVersion = "1.26"

// License is the SPDX expression for every module. The text is in LICENSE, and only there: the go
// command adds a file of that name to each module, and pkg.go.dev knows both licenses in it.
const License = "MIT-0 OR Unlicense"

// Testify may be used by the tests of atoms and patterns.
const Testify = "github.com/stretchr/testify"

// CoreImports says which packages of core some packages of core may import; a pattern ends in "/...".
// All other packages of core may import the root and each other, but not core/coretest. Leaves are public because other modules
// use the same data: atoms/ratelimit the buckets, patterns/statuspage the histograms. See docs/adr/0033.
var CoreImports = map[string][]string{
	"core":                    {"core/signals", "core/guard", "core/bucket", "core/durations", "core/internal/..."},
	"core/signals":            {"core/guard", "core/internal/..."},
	"core/guard":              nil,
	"core/bucket":             nil,
	"core/durations":          nil,
	"core/internal/history":   {"core/durations"},
	"core/internal/sched":     {"core/internal/fifo", "core/internal/meters", "core/internal/spin"},
	"core/internal/window":    {"core/internal/sched"},
	"core/internal/meters":    {"core/bucket"},
	"core/internal/hook":      {"core/guard", "core/internal/frames", "core/internal/glob", "core/internal/lists"},
	"core/internal/logtext":   {"core/guard"},
	"core/internal/schedtest": {"core/internal/meters"},
}

// RootReadmeLines is how long README.md of the repository may be.
const RootReadmeLines = 160

// RootReadmeWords is how many words it may have, with code.
const RootReadmeWords = 1200

// MinReadmeLines is the least length of the README.md of an atom or a pattern.
const MinReadmeLines = 20

// Kind is a group of modules that share their rules.
type Kind struct {
	Pattern     string   // pattern of the module's directory, as in [path.Match]
	Published   bool     // the module gets a tag with every release
	Uses        []string // patterns of the directories of modules it may import and require
	Testify     bool     // may use [Testify] in tests
	Tool        bool     // may have packages main and import any library; other kinds need a line in [Libraries]
	Files       []string // patterns of files it must have; NAME is the last element of its directory
	ReadmeLines int      // how long its README.md may be
	Reason      string
}

var (
	core      = []string{"core"}
	stored    = []string{"core", "atoms/data"}
	published = []string{"core", "atoms/*", "atoms/data/*", "atoms/durable/*", "atoms/mesh/*", "patterns/*"}
	queued    = []string{"core", "atoms/durable"}

	filesOfLarge = []string{"doc.go", "example*_test.go", "README.md", "go.mod"}
	filesOfTool  = []string{"README.md", "go.mod"}
)

// small is the kind of atoms and patterns.
func small(pattern string, uses []string, reason string) Kind {
	files := []string{"doc.go", "NAME.go", "NAME_test.go", "example_test.go", "README.md", "go.mod"}
	return Kind{Pattern: pattern, Published: true, Uses: uses, Testify: true, Files: files, ReadmeLines: 80, Reason: reason}
}

// Kinds lists every kind of module. The first whose pattern matches counts.
var Kinds = []Kind{
	{
		Pattern: "core", Published: true, Files: filesOfLarge, ReadmeLines: 200,
		Reason: "every module depends on core, so core depends on nothing",
	},
	small("atoms/*", core,
		"a user of one atom gets core and that atom; atoms work together by signals, not by imports"),
	small("atoms/data/sqlite", []string{"core", "atoms/data", "atoms/sqlitewriter"},
		"it is a store like the others, and only atoms/sqlitewriter opens SQLite"),
	small("atoms/data/*", stored,
		"a store implements the contract in atoms/data; its own module keeps its driver out of the other modules"),
	small("atoms/durable/sqlite", []string{"core", "atoms/durable", "atoms/sqlitewriter"},
		"it is a store like the others, and only atoms/sqlitewriter opens SQLite"),
	small("atoms/durable/*", queued,
		"a store implements the contract in atoms/durable; its own module keeps its driver out of the other modules"),
	small("atoms/mesh/*", []string{"core", "atoms/mesh"},
		"a server for a mesh; its own module keeps nats-server out of programs that have one elsewhere"),
	small("patterns/fxmodule", []string{"core", "patterns/jobs"},
		"it gives jobs to an application of fx, which others should not have to download"),
	small("patterns/persistentwindow", []string{"core", "atoms/sqlitewriter"},
		"its window is in SQLite, which only atoms/sqlitewriter opens"),
	small("patterns/*", core,
		"a pattern shows how to use core; if it needs an atom it is a scenario and belongs in demo"),
	{
		Pattern: "cmd/*", Published: true, Tool: true, Files: filesOfTool, ReadmeLines: 80,
		Reason: "go install refuses a module that replaces others, so a command requires no module of this repository",
	},
	{
		Pattern: "complete", Published: true, Uses: published, Files: filesOfLarge, ReadmeLines: 120,
		Reason: "complete exports the names of every published module again, and has no logic of its own",
	},
	{
		Pattern: "demo", Uses: published, Tool: true, Files: filesOfTool, ReadmeLines: 120,
		Reason: "a scenario uses the small modules as a user would; nothing imports it",
	},
	{
		Pattern: "examples", Uses: published, Tool: true, Files: filesOfTool, ReadmeLines: 40,
		Reason: "each is a whole program in one file, which a reader copies; nothing imports it",
	},
	{
		Pattern: "bench", Uses: published, Tool: true, Files: filesOfTool, ReadmeLines: 200,
		Reason: "benchmarks compare with other libraries, which users should not have to download",
	},
	{
		Pattern: "scripts", Uses: published, Tool: true, Files: filesOfTool, ReadmeLines: 80,
		Reason: "these are programs of the maintainers; nothing imports them",
	},
}

// Library is the library that a published module exists for.
type Library struct {
	Module string // directory
	Path   string // module path of the library
	Tests  bool   // only tests may import it
	Reason string
}

// Libraries lists the exceptions to the rule that an atom requires core and nothing else.
var Libraries = []Library{
	{"atoms/sqlitewriter", "modernc.org/sqlite", false, "SQLite itself, without cgo, so that cross-compiling stays one command; two modules that open it would be two writers"},
	{"atoms/data/postgres", "github.com/jackc/pgx/v5", false, "the PostgreSQL driver"},
	{"atoms/durable/postgres", "github.com/jackc/pgx/v5", false, "the PostgreSQL driver"},
	{"atoms/mesh", "github.com/nats-io/nats.go", false, "the client of NATS, which carries the messages; see docs/adr/0032"},
	{"atoms/mesh", "github.com/anishathalye/porcupine", true, "it checks histories of holds, flushes and reads"},
	{"atoms/mesh/embedded", "github.com/nats-io/nats.go", false, "it connects to the server that it runs"},
	{"atoms/mesh/embedded", "github.com/nats-io/nats-server/v2", false, "the server that it runs"},
	{"atoms/scheduledtasks", "github.com/robfig/cron/v3", false, "the parser of cron expressions"},
	{"cmd/ephemeral", "golang.org/x/tools", false, "it reads programs: package loading and the interface of go vet"},
	{"cmd/ephemeral", "charm.land/bubbletea/v2", false, "the terminal of top: raw mode, keys and window size on three systems, tested as a function from a message to the next model"},
	{"patterns/fxmodule", "go.uber.org/fx", false, "the container that the module is for"},
	{"patterns/telemetry", "go.opentelemetry.io/otel", false, "the API of OpenTelemetry: global providers, attributes and status codes"},
	{"patterns/telemetry", "go.opentelemetry.io/otel/metric", false, "the API of OpenTelemetry for metrics"},
	{"patterns/telemetry", "go.opentelemetry.io/otel/trace", false, "the API of OpenTelemetry for spans"},
	{"patterns/telemetry", "go.opentelemetry.io/otel/sdk", true, "the program chooses the SDK; the tests look at what it exports"},
	{"patterns/telemetry", "go.opentelemetry.io/otel/sdk/metric", true, "the program chooses the SDK; the tests look at what it exports"},
}

// Separate are the packages of module complete for code that links a library. Package
// complete shows all other code. So one "go get" brings everything, and only programs that
// import one of these packages link its library.
var Separate = map[string][]string{
	"cron":          {"atoms/scheduledtasks"},
	"mesh/embedded": {"atoms/mesh/embedded"},
	"fx":            {"patterns/fxmodule"},
	"mesh":          {"atoms/mesh"},
	"postgres":      {"atoms/data/postgres", "atoms/durable/postgres"},
	"sqlite":        {"atoms/sqlitewriter", "atoms/data/sqlite", "atoms/durable/sqlite", "patterns/persistentwindow"},
	"telemetry":     {"patterns/telemetry"},
}

// ShownIn returns the name of the package of module complete that shows the package in dir.
func ShownIn(dir string) string {
	for name, dirs := range Separate {
		if slices.Contains(dirs, dir) {
			return name
		}
	}
	return "complete"
}

// KindOf returns the kind of the module in dir. If there is none, it returns a kind with
// the empty pattern.
func KindOf(dir string) *Kind {
	for i := range Kinds {
		if Matches(Kinds[i].Pattern, dir) {
			return &Kinds[i]
		}
	}
	return &Kind{Reason: "there is no kind of module for this directory"}
}

// MayUse reports whether modules of this kind may import and require the module in dir.
func (k *Kind) MayUse(dir string) bool {
	return slices.ContainsFunc(k.Uses, func(pattern string) bool { return Matches(pattern, dir) })
}

// LibrariesOf returns the libraries that the module in dir may use.
func LibrariesOf(dir string) []Library {
	return slices.DeleteFunc(slices.Clone(Libraries), func(l Library) bool {
		return l.Module != dir && dir != "complete" // complete names types of all libraries
	})
}

// Published returns the modules of the tree that get a tag with every release,
// sorted by directory.
func Published(t *repo.Tree) []*repo.Module {
	return slices.DeleteFunc(slices.Clone(t.Modules), func(m *repo.Module) bool { return !KindOf(m.Dir).Published })
}

// Shown reports whether module complete shows the names of the package in dir: other
// modules can import it, and it is not for tests.
func Shown(dir string) bool {
	base, _, _ := strings.Cut(dir, "/")
	return slices.Contains([]string{"core", "atoms", "patterns"}, base) && !slices.Contains([]string{"core/coretest", "atoms/data/datatest", "atoms/durable/durabletest", "atoms/durable/flow/flowtest"}, dir) && !Internal(dir)
}

// Internal reports whether only packages of the same module can import the package in dir.
func Internal(dir string) bool { return strings.Contains(dir+"/", "/internal/") }

// Matches is [path.Match] for the patterns of this package, which are well-formed.
func Matches(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
