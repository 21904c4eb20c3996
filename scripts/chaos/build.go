//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	modules = "github.com/ephemeralgo/ephemeral"
	self    = modules + "/scripts/chaos"
)

// goTool runs the go command in a directory and returns what it prints.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), err
}

// root is the directory of the repository.
func root(ctx context.Context) (string, error) {
	work, err := goTool(ctx, "", "env", "GOWORK")
	return filepath.Dir(work), err
}

// build builds this program in dir, from sources of which some are changed: files by their paths.
func build(ctx context.Context, dir string, files map[string][]byte) (program string, err error) {
	overlay := map[string]string{}
	for path, text := range files {
		overlay[path] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(overlay), filepath.Base(path)))
		if err := os.WriteFile(overlay[path], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return "", err
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "program")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return "", err
	}
	_, err = goTool(ctx, "", "build", "-overlay", list, "-o", program, self)
	return program, err
}

//go:embed clock.go
var clockSource string

// buildClock builds this program so that its modules take the time from chaosNow. A mutant makes a mutant.
func (o options) buildClock(ctx context.Context, dir string) (string, error) {
	root, err := root(ctx)
	if err != nil {
		return "", err
	}
	files := map[string][]byte{}
	for _, m := range mutations {
		if m.engine == o.engine() && m.name == o.mutate {
			if files, err = m.source(root); err != nil {
				return "", err
			}
		}
	}
	list, err := goTool(ctx, "", "list", "-deps", "-f", "{{.Name}} {{.Dir}} {{range .GoFiles}}{{.}} {{end}}", self)
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if name, err := filepath.Rel(root, words[1]); err != nil || strings.HasPrefix(name, "..") || strings.HasPrefix(name, "scripts") {
			continue
		}
		for _, name := range words[2:] {
			path := filepath.Join(words[1], name)
			text := files[path]
			if text == nil {
				if text, err = os.ReadFile(path); err != nil {
					return "", err
				}
			}
			if bytes.Contains(text, []byte("time.Now")) && bytes.Contains(text, []byte(`"time"`)) {
				files[path] = append(bytes.ReplaceAll(text, []byte("time.Now"), []byte("chaosNow")), "\nvar _ time.Time\n"...)
				files[filepath.Join(words[1], "chaos_clock.go")] = []byte(strings.Replace(clockSource, "package main", "package "+words[0], 1))
			}
		}
	}
	if err != nil {
		return "", err
	}
	return build(ctx, dir, files)
}

// A mutation takes a fence out of the sources.
type mutation struct {
	name   string
	engine string      // postgres or sqlite
	edits  [][3]string // file below atoms/durable, text, and what is in its place
	limit  string      // -limit; "": as it is
	clock  bool        // -clock
	flows  string      // -flows; "": as it is
	beyond string      // why chaos does not find it, and what does; "": it does
}

const (
	turnSQL  = "postgres/migrations/1_schema.sql" // durable_turn_1
	pgClaim  = "postgres/claim.go"
	liteTurn = "sqlite/claim.go"
)

// mutations are the fences of both engines. If a text is not in its file, the mutation is an error.
var mutations = []mutation{
	{name: "nolock-enqueue", engine: "postgres", edits: [][3]string{
		{"postgres/postgres.go", `"select pg_catalog.pg_advisory_xact_lock(h) from ("+hashes`, `"select h from ("+hashes`}, {"postgres/insert.go", "not pg_catalog.pg_try_advisory_xact_lock(h)", "h <> h"}}},
	{name: "nolock-turn", engine: "postgres", edits: [][3]string{{turnSQL, "not pg_catalog.pg_try_advisory_xact_lock(h)", "h <> h"}}},
	{name: "nolock-finish", engine: "postgres", edits: [][3]string{{turnSQL, "pg_catalog.pg_advisory_xact_lock(h) from", "h from"}}},
	{name: "nolock-cancel", engine: "postgres", edits: [][3]string{{"postgres/postgres.go", `"select pg_catalog.pg_advisory_xact_lock(h) from (select distinct "`, `"select h from (select distinct "`}}},
	{name: "notoken", engine: "postgres", edits: [][3]string{{turnSQL, "where current = token and state = 4", "where state = 4"}}},
	{name: "nostate", engine: "postgres", edits: [][3]string{{turnSQL, "where current = token and state = 4", "where current = token"}}},
	{name: "nolimit", engine: "postgres", edits: [][3]string{{turnSQL, "perform pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{s}' || p_queue, 2))", "perform 1"}}},
	{name: "noclass", engine: "postgres", edits: [][3]string{{turnSQL, "select pg_catalog.array_agg(c.room), ", "select pg_catalog.array_agg(1000::bigint), "}}},
	{name: "nocost", engine: "postgres", edits: [][3]string{{turnSQL, "v_price > 0 and v_left[v_c] <", "v_price < 0 and v_left[v_c] <"}}},
	{name: "nokeyrate", engine: "postgres", edits: [][3]string{{turnSQL, "least(k.full_at, p_now + p_every * p_burst * interval '1 microsecond') - ", "p_now - "}}},
	{name: "norate", engine: "postgres", edits: [][3]string{{turnSQL, "pg_catalog.floor({s}.durable_tokens_1({s}.durable_come_1(c.rate, c.since, v_now), c.mark, c.burst))::bigint", "1000"}}},
	{name: "nopause", engine: "postgres", edits: [][3]string{{turnSQL, "p.key = i.key and p.key <> '' and p.class = '' and (p.until is null or p.until > v_now)", "false"}}},
	{name: "late-pause", engine: "postgres", edits: [][3]string{{turnSQL, "where v_held and p.queue", "where false and p.queue"}},
		beyond: "a turn seldom waits for a lock while Pause begins and returns: TestPauseMeetsTurn"},
	{name: "norow", engine: "postgres", limit: "0", edits: [][3]string{
		{turnSQL, "limit v_k for update skip locked", "limit v_k"}, {turnSQL, "limit o.most for update skip locked", "limit o.most"}}},
	{name: "early-lease", engine: "postgres", edits: [][3]string{{pgClaim, "expires <= pg_catalog.clock_timestamp() order", "expires <= pg_catalog.clock_timestamp() + interval '1 second' order"}}},
	{name: "free-all", engine: "postgres", edits: [][3]string{{pgClaim, "not exists (select from {s}.durable_node as n where n.id = i.node)", "true"}}},
	{name: "noorder", engine: "postgres", edits: [][3]string{{turnSQL, "order by i.rank, i.id limit 1", "order by i.rank, i.id desc limit 1"}}},
	{name: "nounique", engine: "postgres", edits: [][3]string{{"postgres/insert.go", "item = case when u.until <= (select now from clock) then excluded.item else u.item end", "item = excluded.item"}}},
	{name: "noalone", engine: "postgres", edits: [][3]string{{turnSQL, "l.item = i.id and l.losses >= 2", "l.item = i.id and l.losses >= 2000"}}},
	{name: "cancel-ended", engine: "postgres", edits: [][3]string{{"postgres/manage.go", "and state + 0 in (1, 2, 4, 8, 16, 64) and state & $4::smallint <> 0 and not (`+undoes+`) returning", "and $4::smallint is not null returning"}}},
	{name: "nopromote", engine: "postgres", edits: [][3]string{{"postgres/manage.go", "\t\tp.promote(queue, ids)\n", ""}}},
	{name: "noundecided", engine: "postgres", edits: [][3]string{{"postgres/postgres.go", `err = fmt.Errorf("%w: %w", durable.ErrUndecided, err)`, ""}}},
	{name: "own-clock", engine: "postgres", clock: true, edits: [][3]string{{pgClaim, "\t\"slices\"\n", "\t\"slices\"\n\t\"time\"\n"}, {pgClaim, "micros(node.Lease), note)", "micros(node.Lease), note, time.Now())"},
		{pgClaim, "set lease = $2::bigint * interval '1 microsecond', expires = pg_catalog.clock_timestamp() +", "set lease = $2::bigint * interval '1 microsecond', expires = $4::timestamptz +"}}},
	{name: "dead-claims", engine: "postgres", edits: [][3]string{{turnSQL, "n.id = p_node and n.expires > pg_catalog.clock_timestamp()", "n.id = p_node"}},
		beyond: "the next beat of any node deletes the node and frees what it has claimed, and its own process starts nothing: TestLeaseOfTheNode"},
	{name: "dead-beats", engine: "postgres", edits: [][3]string{{pgClaim, "where id = $1 and expires > pg_catalog.clock_timestamp() returning id", "where id = $1 returning id"}},
		beyond: "the same beat has just deleted the node, unless its row is locked, and then nobody has freed its items"},
	{name: "beats-wait", engine: "postgres", edits: [][3]string{{pgClaim, "order by i.id for update skip locked", "order by i.id for update"}},
		beyond: "nodes lose their leases, which costs time only: TestBeatsDoNotWait"},
	{name: "claims-wait", engine: "postgres", limit: "0", edits: [][3]string{
		{turnSQL, "limit v_k for update skip locked", "limit v_k for update"}, {turnSQL, "limit o.most for update skip locked", "limit o.most for update"}},
		beyond: "claims wait for each other, which costs time only: TestClaimsDoNotWait"},
	{name: "norecord", engine: "postgres", limit: "0", flows: "2", edits: [][3]string{{turnSQL, "i.token = r.token", "true"}}},
	{name: "nolock-record", engine: "postgres", limit: "0", flows: "2", edits: [][3]string{{turnSQL, "as r (id bigint))) order by i.id for no key update", "as r (id bigint)))"}}},
	{name: "nolock-signal", engine: "postgres", limit: "0", flows: "2", edits: [][3]string{{turnSQL, "from pg_catalog.unnest(p_keys) as key union all select i.key", "from pg_catalog.unnest('{}'::text[]) as key union all select i.key"}}},
	{name: "noself", engine: "postgres", edits: [][3]string{{"claim.go", "func() { s.lose(ErrLeaseLost) })", "func() {})"}},
		beyond: "a body that goes on without its lease costs time, and its end is refused: TestLeaseIsLost"},
	{name: "late-start", engine: "postgres", edits: [][3]string{{"claim.go", "return s.ctx.Err() == nil && s.left() > 0", "return true"}},
		beyond: "a process is seldom stopped between its claim and the start of the body: TestNoBodyStartsAfterTheLease"},

	{name: "notoken", engine: "sqlite", edits: [][3]string{{liteTurn, "i == nil || i.Token != e.Token", "i == nil"}}},
	{name: "nostate", engine: "sqlite", edits: [][3]string{{liteTurn, "case i.State != durable.Running:", "case false:"}}},
	{name: "nolimit", engine: "sqlite", edits: [][3]string{{liteTurn, "node.MaxCluster-running", "node.MaxCluster"}}},
	{name: "noclass", engine: "sqlite", edits: [][3]string{{"sqlite/class.go", "\treturn room\n", "\treturn max(room, 1000)\n"}}},
	{name: "nocost", engine: "sqlite", edits: [][3]string{{"sqlite/class.go", "c.CostRate.PerSecond == 0 || price == 0 ||", "true ||"}}},
	{name: "nokeyrate", engine: "sqlite", edits: [][3]string{{"sqlite/pause.go", "return max(from, min(full, ", "return min(from, min(full, "}}},
	{name: "norate", engine: "sqlite", edits: [][3]string{{"sqlite/class.go", "min(room, int(math.Floor(c.tokens(calls, now)))-int(c.taken[calls]))", "min(room, 1000)"}}},
	{name: "nopause", engine: "sqlite", edits: [][3]string{{liteTurn, "held = fmt.Sprintf(unheld, t.now)", "held = \"\""}, {liteTurn, "\t\"fmt\"\n", ""}}},
	{name: "early-lease", engine: "sqlite", edits: [][3]string{{liteTurn, "t.queue, t.now)\n\tfor", "t.queue, t.now+1_000_000)\n\tfor"}}},
	{name: "noorder", engine: "sqlite", edits: [][3]string{{"sqlite/item.go", "order by b.rank, b.id limit 1", "order by b.rank, b.id desc limit 1"}}},
	{name: "nounique", engine: "sqlite", edits: [][3]string{{"sqlite/item.go", "if done.Duplicate = !in.Replace; done.Duplicate {", "if done.Duplicate = false; done.Duplicate {"}}},
	{name: "noalone", engine: "sqlite", edits: [][3]string{{liteTurn, "(losses >= 2) = ?\"+held+\" order", "? is not null\"+held+\" order"}}},
	{name: "cancel-ended", engine: "sqlite", edits: [][3]string{{"sqlite/manage.go", "i.State&(durable.Waiting|durable.Halted|durable.Dead) != 0", "true"}}},
	{name: "nopromote", engine: "sqlite", edits: [][3]string{{"sqlite/manage.go", "t.save(t.leave(i)...)", "t.leave(i)"}}},
	{name: "dead-claims", engine: "sqlite", edits: [][3]string{{liteTurn, "where id = ? and expires > ?\", node.ID, t.now)", "where id = ?\", node.ID)"}},
		beyond: "as on PostgreSQL"},
}

// source returns the files that a mutation changes.
func (m mutation) source(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range m.edits {
		path := filepath.Join(root, "atoms/durable", e[0])
		text, ok := files[path]
		if !ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		if !bytes.Contains(text, []byte(e[1])) {
			return nil, fmt.Errorf("mutation %s of %s: %s has no text %q", m.name, m.engine, e[0], e[1])
		}
		files[path] = bytes.ReplaceAll(text, []byte(e[1]), []byte(e[2]))
	}
	return files, nil
}

// mutant says in the environment of a program that its fence is missing already.
const mutant = "EPHEMERAL_CHAOS_MUTANT"

// runMutations runs a mutation, or all of the engine, and prints a row for each. It is an error if
// one is not found that chaos can find.
func (o options) runMutations(ctx context.Context) error {
	var missed []string
	some := slices.DeleteFunc(slices.Clone(mutations), func(m mutation) bool { return m.engine != o.engine() || o.mutate != "all" && o.mutate != m.name })
	if len(some) == 0 {
		return fmt.Errorf("-mutate must be all or a name in scripts/chaos/build.go, not %q", o.mutate)
	}
	for _, m := range some {
		found, err := o.runMutation(ctx, m)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %s | %s | %s |\n", m.name, m.engine, cmp.Or(found, "not found"), m.beyond)
		if found == "" && m.beyond == "" {
			missed = append(missed, m.name)
		}
	}
	if missed != nil {
		return fmt.Errorf("nothing is found without the fences %q", missed)
	}
	return nil
}

// runMutation builds a mutant and lets it run until it fails. It returns after how long, and the first
// promise that was broken; "" means none.
func (o options) runMutation(ctx context.Context, m mutation) (found string, err error) {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	root, err := root(ctx)
	if err != nil {
		return "", err
	}
	files, err := m.source(root)
	if err != nil {
		return "", err
	}
	program, err := build(ctx, dir, files)
	if err != nil {
		return "", err
	}
	args := []string{"-for", o.span.String(), "-mutate", m.name, "-limit", cmp.Or(m.limit, fmt.Sprint(o.limit)), fmt.Sprintf("-sqlite=%v", o.sqlite), "-flows", cmp.Or(m.flows, fmt.Sprint(o.flows)), fmt.Sprintf("-clock=%v", o.clock || m.clock)}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), mutant+"=1")
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "found after "); ok {
			return strings.TrimSpace(text), nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("mutation %s: %w: %s", m.name, err, out)
	}
	return "", nil
}
