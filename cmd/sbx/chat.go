package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/engine"
)

type chatFlags struct {
	history, stop, takeOver, ask, fresh, full bool
	approve, deny                             string
	askSet                                    bool
}

func newChatCmd(c *cli) *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat SANDBOX [MESSAGE]",
		Short: "Talk with Claude about a sandbox; it has the healer's tools",
		Long: `Talk with Claude about a sandbox. It knows the evidence and what the healer tried, and
has the healer's tools: what it changes stays, and a checkpoint before its first edit
is what to go back to. The conversation is kept, and goes on with the next message.

With a message, or with one on its input, it answers that and exits: 0 answered,
1 it could not go on, 5 somebody else is at work, 6 budget spent, 130 stopped.
Without one, and with a terminal, it goes on until the end of the input (Ctrl-D).
Ctrl-C stops the answer; what it did until then stays.`,
		Example: "  sbx chat api \"why does it not start?\"\n  sbx chat api --ask \"fix it\"\n  sbx chat api --history\n  sbx chat api --stop",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.askSet = cmd.Flags().Changed("ask")
			return c.chat(cmd.Context(), args[0], strings.Join(args[1:], " "), f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.history, "history", false, "print what was said and done so far")
	fl.BoolVar(&f.stop, "stop", false, "stop the answer that is under way")
	fl.BoolVar(&f.takeOver, "take-over", false, "end a heal that is under way; what it changed is rolled back")
	fl.BoolVar(&f.ask, "ask", false, "ask before each call that changes something")
	fl.BoolVar(&f.fresh, "fresh", false, "begin the conversation anew; the history stays")
	fl.BoolVar(&f.full, "full", false, "unfold results and diffs")
	fl.StringVar(&f.approve, "approve", "", "approve a call that waits, by its id")
	fl.StringVar(&f.deny, "deny", "", "refuse a call that waits, by its id")
	addJSON(c, cmd)
	return cmd
}

func (c *cli) chat(ctx context.Context, ref, message string, f chatFlags) error {
	if f.history {
		return c.chatHistory(ctx, ref, f)
	}
	return c.withSandbox(ctx, ref, func(e engine.Engine, sb engine.Sandbox) error {
		switch {
		case f.stop:
			_, err := e.Do(ctx, engine.NewAction(engine.StopChat{Sandbox: sb.ID}))
			return c.done(err, sb, "the answer is stopped")
		case f.approve != "":
			return c.answerCall(ctx, e, sb, f.approve, engine.AnswerOnce)
		case f.deny != "":
			return c.answerCall(ctx, e, sb, f.deny, engine.AnswerNo)
		}
		t := &talker{c: c, e: e, sb: sb, f: f, in: bufio.NewReader(c.in)}
		switch {
		case message != "":
			return t.say(ctx, message)
		case c.terminal && !c.json:
			return t.converse(ctx)
		}
		b, err := io.ReadAll(io.LimitReader(c.in, engine.MaxSaid+1))
		if err != nil {
			return fmt.Errorf("read the message: %w", err)
		}
		return t.say(ctx, strings.TrimSpace(string(b)))
	})
}

func (c *cli) answerCall(ctx context.Context, e engine.Engine, sb engine.Sandbox, id string, a engine.Answer) error {
	_, err := e.Do(ctx, engine.NewAction(engine.AnswerApproval{Message: engine.MessageID(id), Answer: a}))
	return c.done(err, sb, "answered")
}

func (c *cli) chatHistory(ctx context.Context, ref string, f chatFlags) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	sb, err := snap.Find(ref)
	if err != nil {
		return err
	}
	list, err := e.Messages(ctx, engine.MessageQuery{Sandbox: sb.ID})
	if err != nil {
		return err
	}
	for _, m := range list {
		if c.json {
			if err := c.printJSON(m); err != nil {
				return err
			}
			continue
		}
		for _, line := range chatLines(m, f.full) {
			if _, err := fmt.Fprintln(c.out, cleanLine(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// talker is one side of a conversation.
type talker struct {
	c    *cli
	e    engine.Engine
	sb   engine.Sandbox
	f    chatFlags
	in   *bufio.Reader
	view chatView
}

// converse goes on until the end of the input.
func (t *talker) converse(ctx context.Context) error {
	fmt.Fprintf(t.c.err, "About %s. Ctrl-C stops an answer, Ctrl-D leaves.\n", cleanLine(t.sb.Name))
	for ctx.Err() == nil {
		fmt.Fprint(t.c.err, "> ")
		line, err := t.in.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			if err := t.say(ctx, strings.TrimSpace(line)); err != nil && !errors.As(err, new(exit)) {
				t.c.report(err)
			}
			t.f.takeOver, t.f.fresh = false, false
		}
		if err != nil {
			return nil // the end of the input
		}
	}
	return nil
}

// say says one thing and shows the answer.
func (t *talker) say(ctx context.Context, text string) error {
	body := engine.Say{Sandbox: t.sb.ID, Text: text, TakeOver: t.f.takeOver, Fresh: t.f.fresh}
	if t.f.askSet {
		body.Ask = &t.f.ask
	}
	r, err := engine.Chat(ctx, t.e, body)
	if err != nil {
		return err
	}
	// The answer is followed to its end also when it is stopped: the end of
	// this command's own context must not cut the line.
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	stopping := make(chan os.Signal, 1)
	signal.Notify(stopping, os.Interrupt)
	defer signal.Stop(stopping)
	go t.stopOn(following, ctx.Done(), stopping, leave)

	t.view = chatView{c: t.c, full: t.f.full}
	var end engine.Message
	for m, err := range engine.FollowTurn(following, t.e, t.sb.ID, r.Message) {
		if err != nil {
			return err
		}
		if err := t.view.show(m); err != nil {
			return err
		}
		if m.State == engine.MessageAsking {
			t.askFor(following, m)
		}
		if m.ID == r.Message {
			end = m
		}
	}
	return t.over(end)
}

// stopWithin is how long a stopped answer is waited for.
const stopWithin = 15 * time.Second

// stopOn stops the answer at the first signal, and gives up waiting for its end
// after a while.
func (t *talker) stopOn(following context.Context, done <-chan struct{}, sig <-chan os.Signal, leave func()) {
	select {
	case <-following.Done():
		return
	case <-done:
	case <-sig:
	}
	ctx, cancel := context.WithTimeout(following, stopWithin)
	defer cancel()
	if _, err := t.e.Do(ctx, engine.NewAction(engine.StopChat{Sandbox: t.sb.ID})); err != nil && !errors.Is(err, engine.Conflict) {
		t.c.report(err)
		leave()
		return
	}
	<-ctx.Done()
	leave()
}

func (t *talker) over(m engine.Message) error {
	if !t.c.json {
		if cost := spentText(m.Spent); cost != "" {
			fmt.Fprintf(t.c.err, "(%s)\n", cost)
		}
		if m.Checkpoint != "" {
			fmt.Fprintf(t.c.err, "(it changed files; before that is checkpoint %s)\n", m.Checkpoint)
		}
	}
	switch {
	case m.State == engine.MessageDone:
		return nil
	case m.State == engine.MessageStopped:
		t.c.say("%s", m.Why)
		return exit(exitInterrupted)
	case strings.HasPrefix(m.Why, "over the budget"):
		t.c.say("%s", m.Why)
		return exit(exitBudget)
	}
	t.c.say("the answer %s: %s", m.State, m.Why)
	return exit(exitFailed)
}

// askFor asks the person at the terminal; without one, it says how to answer.
func (t *talker) askFor(ctx context.Context, m engine.Message) {
	if !t.c.terminal || t.c.json {
		t.c.say("%s %s waits to be approved: sbx chat %s --approve %s, or --deny %s", m.Tool, m.Argument, t.sb.Name, m.ID, m.ID)
		return
	}
	fmt.Fprintf(t.c.err, "  %s %s\n  allow it? y once, a all of this chat, n no: ", cleanLine(m.Tool), cleanLine(m.Argument))
	line, err := t.in.ReadString('\n')
	answer := engine.AnswerNo
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		answer = engine.AnswerOnce
	case "a", "all":
		answer = engine.AnswerChat
	}
	if err != nil {
		answer = engine.AnswerNo
	}
	if _, err := t.e.Do(ctx, engine.NewAction(engine.AnswerApproval{Message: m.ID, Answer: answer})); err != nil && ctx.Err() == nil {
		t.c.report(err)
	}
}
