package responsibility

// listener is a subscription whose handler runs functions of others: those that
// handle what a Keeper reports, and may wait for anything. So nobody must wait for
// the handler, as cancelling would. While it does not run, cancelling waits for
// nothing; while it does, it is the handler that cancels when it is done, which
// from the inside waits for nothing either.
//
// The Keeper's lock guards it. What end and leave return, if not nil, cancels, and
// is to be called without the lock.
type listener struct {
	cancel  func()
	running int // handlers that have found something to do
	over    bool
}

func (l *listener) end() func() {
	again := l.over
	l.over = true
	if again || l.running > 0 {
		return nil
	}
	return l.cancel
}

func (l *listener) leave() func() {
	l.running--
	if l.over && l.running == 0 {
		return l.cancel
	}
	return nil
}
