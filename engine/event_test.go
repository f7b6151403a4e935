package engine

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestEveryEventSurvivesTheWire(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 32, 7, 123e6, time.UTC)
	for kind := range eventCodec {
		body, err := DecodeEventBody(kind, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if body.Kind() != kind {
			t.Errorf("the codec of %s makes a %s", kind, body.Kind())
		}
		ev := Event{Seq: 7, Time: at, By: Actor{Kind: ActorOperator, Name: "dana"}, Action: "ac-x", Body: body}
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		var back Event
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ev, back) {
			t.Errorf("%s: got %+v, want %+v", kind, back, ev)
		}
	}
}

func TestAnUnknownEventIsKeptAsItCame(t *testing.T) {
	in := `{"seq":9,"time":"2026-11-20T14:32:07Z","by":{"kind":"engine"},"kind":"moon.rose","body":{"phase":3}}`
	var ev Event
	if err := json.Unmarshal([]byte(in), &ev); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != in {
		t.Errorf("got %s, want %s", out, in)
	}
	s := NewSnapshot(Position{Epoch: 1, Seq: 8})
	s.Apply(ev)
	if s.Position.Seq != 9 {
		t.Errorf("an unknown event did not move the snapshot: at %d", s.Position.Seq)
	}
}

func TestPositionsReadBack(t *testing.T) {
	want := Position{Epoch: 7, Seq: 481}
	got, err := ParsePosition(want.String())
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "7", "7.", ".1", "-1.2", "7.-2", "a.b", "7.4x"} {
		if _, err := ParsePosition(bad); AsCode(err) != Invalid {
			t.Errorf("%q: got %v, want invalid", bad, err)
		}
	}
}

func TestASpawnedProcessLeavesTheSnapshotWhenItIsOver(t *testing.T) {
	s := NewSnapshot(Position{})
	p := Process{ID: "ps-1", Sandbox: "sb-1", Kind: Spawned, State: ProcessRunning}
	s.Apply(Event{Seq: 1, Body: ProcessChanged{p}})
	if len(s.Processes) != 1 {
		t.Fatal("a running command is not in the snapshot")
	}
	p.State = ProcessExited
	s.Apply(Event{Seq: 2, Body: ProcessChanged{p}})
	if len(s.Processes) != 0 {
		t.Error("a command that is over is still in the snapshot")
	}
}

func TestStepsLeaveTheSnapshotWithTheirRun(t *testing.T) {
	s := NewSnapshot(Position{})
	run := HealRun{ID: "ru-1", Sandbox: "sb-1", State: RunModel}
	s.Apply(Event{Seq: 1, Body: HealStarted{run}})
	s.Apply(Event{Seq: 2, Body: HealStepped{Step{Run: "ru-1", Sandbox: "sb-1", Attempt: 1, Number: 1, State: StepRunning}}})
	s.Apply(Event{Seq: 3, Body: HealStepped{Step{Run: "ru-1", Sandbox: "sb-1", Attempt: 1, Number: 1, State: StepOK}}})
	if got := s.Steps["sb-1"]; len(got) != 1 || got[0].State != StepOK {
		t.Fatalf("got %+v, want one step that is ok", got)
	}
	c := s.Clone()
	run.State, run.Outcome = RunEnded, Healed
	s.Apply(Event{Seq: 4, Body: HealFinished{run}})
	if len(s.Steps) != 0 {
		t.Error("the steps of an ended run are still there")
	}
	if len(c.Steps["sb-1"]) != 1 {
		t.Error("a clone changed with its original")
	}
}
