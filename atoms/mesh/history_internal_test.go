package mesh

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// touch is a write of a node to its register, or a read of it on another node.
type touch struct {
	writer, reader int
	value          int // that is written; 0: it is a read
}

// register is read on one node. What is read is the value of the last write.
var register = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(touch); in.value > 0 {
			return true, in.value
		}
		return output == state, state
	},
}

// histories lets nodes write and read while messages are lost, and returns what happened, for
// each writer and reader. A write holds the next value, and calls Flush if it is told to.
func histories(t *testing.T, seed uint64, flush bool) (found map[touch][]porcupine.Operation) {
	const nodes, writes = 4, 15
	found = map[touch][]porcupine.Operation{}
	var mu sync.Mutex
	inEther(t, func(t *testing.T, e *ether) {
		var all []*node
		for i := range nodes {
			all = append(all, e.join(fmt.Sprint(i), Options{}))
		}
		defer closeAll(all...)
		settle()
		r := rand.New(rand.NewPCG(seed, 2))
		e.losing(func(_, _, _ string, data []byte) bool { // under the lock of the ether
			m := decode(data, "")
			return m.Is != isBeat && m.Is != isLeave && r.IntN(8) == 0
		})
		begun := time.Now()
		log := func(in touch, from time.Duration, out int) {
			mu.Lock()
			defer mu.Unlock()
			op := porcupine.Operation{Input: in, Call: int64(from), Output: out, Return: int64(time.Since(begun))}
			for reader := range nodes {
				if in.value > 0 && reader != in.writer || in.value == 0 && reader == in.reader {
					to := touch{writer: in.writer, reader: reader}
					found[to] = append(found[to], op)
				}
			}
		}
		var work sync.WaitGroup
		for i, n := range all {
			work.Go(func() { // writes
				release := func() {}
				for v := 1; v <= writes; v++ {
					from, last := time.Since(begun), release
					release = n.sink.Hold("a.value", fmt.Sprint(i, " ", v), 0)
					if flush {
						assert.NoError(t, n.Flush(t.Context()))
					}
					log(touch{i, 0, v}, from, 0)
					last()
					time.Sleep(time.Duration(v) * 3 * latency)
				}
			})
			work.Go(func() { // reads
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 60 {
					time.Sleep(time.Duration(random.IntN(40)) * latency / 2)
					var values [nodes]int
					from := time.Since(begun)
					for s := range n.sink.Sense(signals.Query{Pattern: "a.value"}) {
						var writer, value int
						fmt.Sscan(s.Key, &writer, &value)
						values[writer] = max(values[writer], value)
					}
					for writer, value := range values {
						if writer != i {
							log(touch{writer, i, 0}, from, value)
						}
					}
				}
			})
		}
		work.Wait()
	})
	return found
}

// When Flush has returned, a read on each node finds what was held before. Without Flush, the
// checker finds reads of old values.
func TestHistories(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds = 3
	}
	for seed := range seeds {
		for _, flush := range []bool{true, false} {
			t.Run(strconv.FormatBool(flush)+fmt.Sprint(seed), func(t *testing.T) {
				results := map[porcupine.CheckResult]int{}
				for _, history := range histories(t, seed, flush) {
					results[porcupine.CheckOperationsTimeout(register, history, 20*time.Second)]++
				}
				if flush {
					assert.Equal(t, map[porcupine.CheckResult]int{porcupine.Ok: 12}, results)
				} else {
					assert.NotZero(t, results[porcupine.Illegal])
				}
			})
		}
	}
}
