package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sbx/engine"
)

// How long to wait between requests to a provider that is away.
const (
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 60 * time.Second
)

// ask gets the next whole turn, waiting for the provider where that may help.
func (r *run) ask(ctx context.Context) (Turn, error) {
	r.fit()
	var gone time.Time // when the provider went away
	for failures := 0; ; {
		turn, err := r.reply(ctx)
		if err == nil {
			r.back(ctx)
			if failures > 0 {
				r.away += time.Since(gone)
			}
			return turn, nil
		}
		if ctx.Err() != nil {
			return Turn{}, ctx.Err()
		}
		if errors.Is(err, ErrTooLong) {
			if err := r.overflow(err); err != nil {
				return Turn{}, err
			}
			continue
		}
		if !errors.Is(err, engine.Unavailable) {
			return Turn{}, err
		}
		if failures++; failures == 1 {
			gone = time.Now()
		}
		pause := backoff(failures, err)
		if r.away+time.Since(gone)+pause > r.Budget.Retry {
			return Turn{}, gaveUp(err, failures)
		}
		if err := r.wait(ctx, pause, err); err != nil {
			return Turn{}, err
		}
	}
}

// reply is one request. Its words are told as they come; what a failed one cost
// counts too.
func (r *run) reply(ctx context.Context) (Turn, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	th := &thought{r: r}
	turn, err := r.Model.Reply(asking, r.transcript, r.Tools, func(words string) {
		r.back(ctx)
		if th.grow(ctx, words); th.err != nil {
			cancel() // nobody can write down what it goes on saying
		}
	})
	r.spent = r.spent.Add(turn.Spent)
	if th.err != nil {
		return Turn{}, th.err
	}
	if err != nil {
		if recordErr := th.drop(ctx, err); recordErr != nil {
			return Turn{}, recordErr
		}
		return Turn{}, err
	}
	turn.Message.Role = Assistant
	return turn, th.end(ctx, turn.Message.Text)
}

// wait lets pause go by and tells why.
func (r *run) wait(ctx context.Context, pause time.Duration, why error) error {
	if r.Waiting != nil {
		r.waiting = true
		r.Waiting(ctx, why.Error())
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// back tells that the provider answers again.
func (r *run) back(ctx context.Context) {
	if r.waiting {
		r.waiting = false
		r.Waiting(ctx, "")
	}
}

// backoff is how long to wait after so many failures in a row: twice as long
// each time, at random between half of that and all of it so that sandboxes
// don't come back together, and never sooner than the provider said.
func backoff(failures int, err error) time.Duration {
	most := backoffMost
	if shift := failures - 1; shift < 8 {
		most = min(most, backoffFirst<<shift)
	}
	pause := most/2 + rand.N(most/2)
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.RetryAfter > 0 {
		return max(pause, e.RetryAfter.D()+rand.N(backoffFirst))
	}
	return pause
}

func gaveUp(err error, failures int) error {
	if failures == 1 {
		return err
	}
	return fmt.Errorf("asked %d times: %w", failures, err)
}
