package profile_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/profile"
)

// labels returns the labels of a context and, from a profile, those of a goroutine of this test.
func labels(ctx context.Context) string {
	var list []string
	pprof.ForLabels(ctx, func(name, value string) bool { list = append(list, name+"="+value); return true })
	var all strings.Builder
	pprof.Lookup("goroutine").WriteTo(&all, 1)
	for _, group := range strings.Split(all.String(), "\n\n") {
		if strings.Contains(group, "profile_test.labels") {
			_, of, _ := strings.Cut(group, "# labels: ")
			of, _, _ = strings.Cut(of, "\n")
			list = append(list, of)
		}
	}
	return strings.Join(list, " ")
}

// A body has labels, in its context and on its goroutine, also after labels of its own. The next body does not inherit them,
// and nested work has its own.
func TestLabels(t *testing.T) {
	got := map[string]string{}
	inner := core.Must(core.NewResultCoordinator(profile.WrapResult(func(ctx context.Context, _ string) (string, error) {
		return labels(ctx), nil
	}), core.Options{Name: "inner"}))
	work := func(ctx context.Context, item string) error {
		pprof.Do(ctx, pprof.Labels("own", "1"), func(context.Context) {})
		got[item] = labels(ctx)
		if item == "nests" {
			got["nested"] = core.Must(inner.Do(ctx, item))
		}
		return nil
	}
	lanes := []core.Lane{{Name: "high"}, {Name: "low"}}
	with := core.Must(core.NewCoordinator(profile.Wrap(work), core.Options{Name: "with", Lanes: lanes, MaxConcurrency: 1}))
	plain := core.Must(core.NewCoordinator(work, core.Options{MaxConcurrency: 1}))
	outside := profile.Wrap(work)(t.Context(), "outside")
	core.Must(with.Lane("low").Enqueue(t.Context(), "low"))
	err := errors.Join(outside, with.Lane("high").Do(t.Context(), "nests"), with.Drain(t.Context()), plain.Do(t.Context(), "plain"))
	coretest.Check(t, err == nil, "got error %v, want none", err)
	for item, want := range map[string]string{
		"outside": "", "plain": "",
		"low":    `coordinator=with lane=low {"coordinator":"with", "lane":"low"}`,
		"nests":  `coordinator=with lane=high {"coordinator":"with", "lane":"high"}`,
		"nested": `coordinator=inner lane= {"coordinator":"inner", "lane":""}`,
	} {
		coretest.Check(t, strings.TrimSpace(got[item]) == want, "%s: got %q, want %q", item, got[item], want)
	}
	coretest.Check(t, core.InOrder(with, plain, inner).Close() == nil, "Close failed")
}

// A panic and Goexit of the body leave no label behind.
func TestLabelsAfterAPanic(t *testing.T) {
	var after string
	c := core.Must(core.NewCoordinator(func(ctx context.Context, item string) error {
		if item == "" {
			after = labels(ctx)
			return nil
		}
		return profile.Wrap(func(context.Context, string) error { panic(item) })(ctx, item)
	}, core.Options{MaxConcurrency: 1}))
	first, second := c.Do(t.Context(), "on purpose"), c.Do(t.Context(), "")
	coretest.Check(t, first != nil, "got no error, want that of the panic")
	coretest.Check(t, second == nil, "got error %v after the panic, want none", second)
	coretest.Check(t, after == "", "left: %q", after)
	coretest.Check(t, c.Close() == nil, "Close failed")
}

func TestMistakes(t *testing.T) {
	for _, wrap := range []func(){func() { profile.Wrap[int](nil) }, func() { profile.WrapResult[int, int](nil) }} {
		func() {
			defer func() { coretest.Check(t, strings.HasPrefix(fmt.Sprint(recover()), "profile: "), "no panic") }()
			wrap()
		}()
	}
}

func BenchmarkWrap(b *testing.B) {
	for name, work := range map[string]core.Work[int]{"plain": coretestWork, "labels": profile.Wrap(coretestWork)} {
		b.Run(name, func(b *testing.B) {
			c := core.Must(core.NewCoordinator(work, core.Options{Name: "c", MaxConcurrency: 1}))
			b.ReportAllocs()
			for b.Loop() {
				core.Must(c.Enqueue(b.Context(), 1))
			}
			c.Close()
		})
	}
}

func coretestWork(context.Context, int) error { return nil }
