// Command csvimport imports a CSV file in stages: it reads rows, checks them on several
// goroutines, and inserts them in batches. A progress bar shows how far it is.
//
// Each stage has a short queue. So the reader is never far ahead of the database, and memory
// does not grow with the file. Rows that are wrong are listed at the end; the others are
// imported.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A row is what the file has in a line. A customer is a row that is right.
type row struct {
	line   int
	fields []string
}

type customer struct {
	name string
	age  int
}

// imports imports a file of size bytes. It prints a bar, and then the rows that are wrong.
func imports(ctx context.Context, file io.Reader, size int64, insert func(context.Context, []customer) error, out io.Writer) error {
	sink := signals.NewSink(signals.SinkOptions{})
	defer progress.Reports.Subscribe(sink, func(_ signals.Signal, r progress.Report) {
		percent := int(100 * r.Fraction())
		fmt.Fprintf(out, "\r[%-20s] %d %%", strings.Repeat("#", percent/5), percent)
	})()
	bar := core.Must(progress.New(sink, "import", size, progress.Options{MinInterval: 20 * time.Millisecond}))

	// The last stage. Its function gets up to 100 customers at once; 200 more may wait.
	inserts, err := batching.New(insert, batching.Options[customer]{
		Name: "insert", MaxSize: 100, MaxQueued: 200, Sink: sink,
		OnError: func(batch []customer, err error) { log.Printf("%d customers are not imported: %v", len(batch), err) },
	})
	if err != nil {
		return err
	}
	defer inserts.Close()

	// The stage before it. While the queue of the last stage is full, Enqueue waits and keeps
	// the slot. So this stage is as slow as the last one, and its own queue fills up.
	checks, err := core.NewCoordinator(func(ctx context.Context, r row) error {
		c, err := check(r)
		if err != nil {
			return err
		}
		return inserts.Enqueue(ctx, c)
	}, core.Options{Name: "check", MaxConcurrency: 4, MaxQueued: 50, MaxFailed: 1000, Sink: sink})
	if err != nil {
		return err
	}
	defer checks.Close()

	// The first stage. Enqueue waits here, too.
	lines := csv.NewReader(file)
	lines.FieldsPerRecord = 2
	for {
		fields, err := lines.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		line, _ := lines.FieldPos(0)
		if _, err := checks.Enqueue(ctx, row{line, fields}); err != nil {
			return err
		}
		bar.Set(lines.InputOffset())
	}
	if err := core.InOrder(checks, inserts).Drain(ctx); err != nil {
		return err
	}
	bar.Done()
	for op := range checks.Operations(core.OperationQuery{Status: core.StatusFailed}) {
		fmt.Fprintf(out, "\nline %d: %v", op.Item.(row).line, op.Err)
	}
	n := inserts.Counters()
	fmt.Fprintf(out, "\n%d customers in %d batches\n", n.Succeeded, n.Batches)
	return nil
}

// check makes a customer of a row.
func check(r row) (customer, error) {
	age, err := strconv.Atoi(r.fields[1])
	if err != nil {
		return customer{}, fmt.Errorf("%q is no age", r.fields[1])
	}
	if r.fields[0] == "" {
		return customer{}, errors.New("the name is missing")
	}
	return customer{r.fields[0], age}, nil
}

// example has 5,000 rows. Two of them are wrong.
func example() string {
	var file strings.Builder
	for n := range 5000 {
		switch n {
		case 1233:
			file.WriteString(",44\n")
		case 4710:
			file.WriteString("customer-4711,young\n")
		default:
			fmt.Fprintf(&file, "customer-%d,%d\n", n+1, 18+n%60)
		}
	}
	return file.String()
}

func main() {
	file := example()
	insert := func(context.Context, []customer) error { // stands for a transaction
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	if err := imports(context.Background(), strings.NewReader(file), int64(len(file)), insert, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
