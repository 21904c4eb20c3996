package mesh

import "time"

// send sends what there is.
func (m *Mesh) send() {
	for {
		m.mu.Lock()
		if !m.own.busy() {
			m.mu.Unlock()
			return
		}
		w := m.own.take()
		m.mu.Unlock()
		m.sendHeld(&w)
		m.sendFacts(&w)
		for _, id := range w.asks {
			ask := message{Is: isAsk, Ask: id, Held: w.held, Digest: w.digest, Last: w.last}
			m.publish(topicState, ask, nil)
			m.publish(topicFacts, ask, nil)
		}
		for _, r := range w.replies {
			m.publishTo(topicTo, r.run, r.m, nil)
		}
		for queue := range w.wakes {
			m.bus.publish(m.subject(topicWake, m.table.run), []byte(queue))
		}
	}
}

// sendHeld sends what has changed about held facts, their list if somebody needs it, and the
// beat.
func (m *Mesh) sendHeld(w *work) {
	for len(w.changes) > 0 {
		var b batch
		var ended []uint64
		for len(w.changes) > 0 && len(ended) < maxBatch {
			c := w.changes[0]
			if c.held == nil && b.take(maxDigits) {
				ended = append(ended, c.id)
			} else if c.held == nil || !b.add(c.held.data) {
				break
			}
			w.changes = w.changes[1:]
		}
		m.publish(topicState, message{Is: isChange, Ended: ended}, b.items)
	}
	if w.listed {
		batches := []batch{{}}
		for _, data := range w.list {
			if !batches[len(batches)-1].add(data) {
				batches = append(batches, batch{})
				batches[len(batches)-1].add(data)
			}
		}
		for _, b := range batches {
			m.publish(topicState, message{Is: isPiece, List: w.number, Pieces: len(batches), Upto: w.upto}, b.items)
		}
	}
	if w.beat {
		m.publish(topicState, message{Is: isBeat, Held: w.held, Digest: w.digest}, nil)
	}
}

// sendFacts sends raised facts. With a beat, it says in any case up to which number.
func (m *Mesh) sendFacts(w *work) {
	var b batch
	var last, unsent uint64
	for _, f := range w.facts {
		data, ok := m.carriers.encode(f.n, f.signal, int64(time.Since(f.signal.Time)))
		if !ok {
			unsent++
			continue
		}
		if !b.add(data) {
			m.publish(topicFacts, message{Is: isFacts, Last: last}, b.items)
			b = batch{}
			b.add(data)
		}
		last = f.n
	}
	if len(w.facts) > 0 || w.beat {
		m.publish(topicFacts, message{Is: isFacts, Last: w.last}, b.items)
	}
	m.mu.Lock()
	m.own.unsent += unsent
	m.own.sent += uint64(len(w.facts)) - unsent
	m.mu.Unlock()
}

// batch is what fits into a message.
type batch struct {
	items [][]byte
	bytes int
}

// add reports whether there was room.
func (b *batch) add(data []byte) bool {
	if len(b.items) == maxBatch || !b.take(len(data)) {
		return false
	}
	b.items = append(b.items, data)
	return true
}

// take takes that many bytes and one for a comma, if there are so many left.
func (b *batch) take(n int) bool {
	if b.bytes+n+1 > maxItems {
		return false
	}
	b.bytes += n + 1
	return true
}

// maxDigits is the length of the longest id.
const maxDigits = 20

func (m *Mesh) publish(topic string, msg message, items [][]byte) {
	m.publishTo(topic, m.table.run, msg, items)
}

// publishTo is called by one goroutine at a time. If it fails, the message is lost, like others.
func (m *Mesh) publishTo(topic, run string, msg message, items [][]byte) {
	msg.Node, msg.Sent = m.opts.Name, m.stamps.at(m.clock())
	if topic == topicTo {
		msg.Run = m.table.run
	}
	m.bus.publish(m.subject(topic, run), encode(msg, items))
}
