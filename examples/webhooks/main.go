// Command webhooks tells customers what has happened, with a request to their servers. What
// it has accepted arrives, even if the program is killed.
//
// To show that, it starts itself as a child, kills the child with kill -9 in the middle of its
// work, and starts another child. See serve for the program that you would write.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// An event is an item of the queue. Its customer is the key, so a customer gets its events in
// their order, and a server that is down delays no other customer.
type event struct {
	ID  int
	URL string // of the customer's server
}

func (e event) Customer() string { return e.URL }

// serve reads events, puts them on disk, says so, and delivers them. When the input ends, it
// finishes what it has begun; what is not delivered then stays on disk.
func serve(dir, url string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	file := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "webhooks.db"), sqlitewriter.Options{}))
	defer file.Close()
	store := core.Must(sqlite.Open(ctx, file, sqlite.Options{}))
	webhooks := core.Must(durable.New(store, event.Customer, deliver, durable.Options{
		Name: "webhooks", MaxConcurrency: 8, Timeout: 10 * time.Second,
		Backoff: 20 * time.Millisecond, // doubled up to a day: a server may be away for days
		Lease:   time.Second,           // so long after a kill, others get the events that the dead process had begun
	}))
	defer webhooks.Close()

	ran := make(chan error, 1)
	go func() { ran <- durable.Run(ctx, webhooks) }() // with the queues of other kinds, if there are any
	for lines := bufio.NewScanner(in); lines.Scan(); {
		id, _ := strconv.Atoi(lines.Text())
		about := webhooks.With(durable.ItemOptions{Metadata: map[string]string{"event": lines.Text()}}) // on lists, pages and spans
		if _, err := about.Enqueue(ctx, event{id, fmt.Sprint(url, "/customer-", id%4)}); err != nil {
			return err // it was not accepted
		}
		fmt.Fprintln(out, id) // it is on disk
	}
	return errors.Join(core.Shutdown(ctx, webhooks.Here()), <-ran)
}

// deliver sends an event. If it returns an error, it is called again later. If the process
// dies, an event that has arrived may be sent again: the key of the request tells that.
func deliver(ctx context.Context, e event) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, nil)
	if err != nil {
		return durable.Permanent(err) // no attempt can succeed
	}
	r.Header.Set("Idempotency-Key", strconv.Itoa(e.ID))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if pause, ok := retry.ParseRetryAfter(answer.Header.Get("Retry-After"), time.Now()); ok {
		return retry.After(errors.New(answer.Status), pause) // as the server asks
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s, attempt %d", e.URL, answer.Status, durable.ClaimFrom(ctx).Attempt)
	}
	return nil
}

// show plays the customers, and kills the child after some requests.
func show(out io.Writer, killAfter int) error {
	dir := core.Must(os.MkdirTemp("", "webhooks"))
	defer os.RemoveAll(dir)
	requests := make(chan string, 1000) // ids of events
	customers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(10 * time.Millisecond)
		requests <- r.Header.Get("Idempotency-Key")
	}))
	defer customers.Close()

	arrived, total := map[string]bool{}, 0
	child, send, accepted := start(dir, customers.URL)
	for id := range 40 {
		fmt.Fprintln(send, id)
	}
	for ; total < killAfter; total++ {
		arrived[<-requests] = true
	}
	child.Process.Kill()
	var ids []string
	for accepted.Scan() {
		ids = append(ids, accepted.Text())
	}
	child.Wait()
	fmt.Fprintf(out, "killed after %d requests, %d events were accepted\n", total, len(ids))

	child, send, _ = start(dir, customers.URL)
	for _, id := range ids {
		for ; !arrived[id]; total++ {
			arrived[<-requests] = true
		}
	}
	send.Close() // the child ends
	fmt.Fprintf(out, "all of them have arrived, %d of them twice\n", total-len(arrived))
	return child.Wait()
}

// start starts a child. It accepts the events that are sent to it.
func start(dir, url string) (child *exec.Cmd, send io.WriteCloser, accepted *bufio.Scanner) {
	child = exec.Command(core.Must(os.Executable()), "serve", dir, url)
	child.Stderr = os.Stderr
	send, accepted = core.Must(child.StdinPipe()), bufio.NewScanner(core.Must(child.StdoutPipe()))
	if err := child.Start(); err != nil {
		panic(err)
	}
	return child, send, accepted
}

func main() {
	run := func() error { return show(os.Stdout, 20) }
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		run = func() error { return serve(os.Args[2], os.Args[3], os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
