// Command nightly writes a report every night. It runs as two processes, so that one may be
// down; each night has one report all the same.
//
// Each process has the schedule, and hands over the night to a queue that both share, with a
// unique id. The queue adds it once. Whichever process is free writes the report.
//
// To show that, it starts both processes with a night of one second, and ends them after the
// first night that both have seen. See serve for the program that you would write.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/scheduledtasks"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// serve is one process. It ends when the input ends. In your program, cron is "30 2 * * *".
func serve(name, dir, cron string, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	file, err := sqlitewriter.Open(ctx, filepath.Join(dir, "reports.db"), sqlitewriter.Options{})
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Exec(ctx, "create table if not exists report (night text, writer text)"); err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return err
	}

	write := func(ctx context.Context, night scheduledtasks.Task) error {
		err := file.Tx(ctx, func(ctx context.Context, tx *sqlitewriter.Tx) error {
			if _, err := tx.Exec(ctx, "insert into report values (?, ?)", night.ID(), name); err != nil {
				return err
			}
			return sqlite.Finish(ctx, tx) // the report and the end of its item, or neither
		})
		if err == nil {
			fmt.Fprintf(out, "%s wrote %s\n", name, night.ID())
		}
		return err
	}
	// The name of the schedule is the key: a night waits for the one before it.
	schedule := func(night scheduledtasks.Task) string { return night.Name }
	reports, err := durable.New(store, schedule, write, durable.Options{Name: "reports", Node: name})
	if err != nil {
		return err
	}
	defer reports.Close()

	handOver := func(ctx context.Context, night scheduledtasks.Task) error {
		_, added, err := reports.With(durable.ItemOptions{Unique: night.ID()}).EnqueueUnique(ctx, night)
		if err == nil {
			fmt.Fprintf(out, "%s handed over %s, added: %t\n", name, night.ID(), added)
		}
		return err
	}
	nights, err := scheduledtasks.New([]scheduledtasks.Definition{{Name: "sales", Cron: cron, TimeZone: "UTC"}},
		scheduledtasks.TargetFunc(handOver), scheduledtasks.Options{
			Store: store, Missed: scheduledtasks.RunOnce, // a night in which both were down is made up for
		})
	if err != nil {
		return err
	}
	defer nights.Close()

	go func() {
		defer stop()
		io.Copy(io.Discard, in)
	}()
	return reports.Run(ctx)
}

// show runs two processes until both have handed over the same night, and its report is
// written.
func show(out io.Writer) error {
	dir := core.Must(os.MkdirTemp("", "nightly"))
	defer os.RemoveAll(dir)
	read, printed := io.Pipe()
	defer printed.Close()
	var processes []*exec.Cmd
	var inputs []io.Closer
	for _, name := range []string{"vienna", "zurich"} {
		p := exec.Command(core.Must(os.Executable()), "serve", name, dir, "* * * * * *")
		inputs = append(inputs, core.Must(p.StdinPipe()))
		p.Stdout, p.Stderr = printed, os.Stderr
		if err := p.Start(); err != nil {
			return err
		}
		processes = append(processes, p)
	}
	seen := map[string]int{} // lines of a night
	for lines := bufio.NewScanner(read); lines.Scan(); {
		fmt.Fprintln(out, lines.Text())
		night := lines.Text()[strings.Index(lines.Text(), "sales@"):]
		night, _, _ = strings.Cut(night, ",")
		if seen[night]++; seen[night] == 3 {
			break
		}
	}
	go io.Copy(io.Discard, read) // what they still print
	for i, p := range processes {
		inputs[i].Close()
		if err := p.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	run := func() error { return show(os.Stdout) }
	if len(os.Args) == 5 && os.Args[1] == "serve" {
		run = func() error { return serve(os.Args[2], os.Args[3], os.Args[4], os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
