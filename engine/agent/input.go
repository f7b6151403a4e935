package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schema is what of a tool's JSON schema is held against an input before the
// tool sees it: keys and their types. Values are the tool's own to check.
type schema struct {
	Properties map[string]struct {
		Type string `json:"type"`
	} `json:"properties"`
	Required             []string `json:"required"`
	AdditionalProperties *bool    `json:"additionalProperties"`
}

// checkInput says in words for the model what is wrong with an input.
func checkInput(raw, input json.RawMessage) error {
	var want schema
	if err := json.Unmarshal(raw, &want); err != nil {
		return fmt.Errorf("its schema is broken: %w", err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(input, &got); err != nil {
		return err
	}
	for _, key := range want.Required {
		if v, ok := got[key]; !ok || kindOf(v) == "null" {
			return fmt.Errorf("%q is missing", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		property, ok := want.Properties[key]
		if !ok && want.AdditionalProperties != nil && !*want.AdditionalProperties {
			return fmt.Errorf("there is no %q; there are: %s", oneLine(key), strings.Join(slices.Sorted(maps.Keys(want.Properties)), ", "))
		}
		if kind := kindOf(got[key]); property.Type != "" && kind != "null" && !fits(kind, property.Type, got[key]) {
			return fmt.Errorf("%q must be of type %s, not %s", key, property.Type, kind)
		}
	}
	return nil
}

func fits(kind, want string, v json.RawMessage) bool {
	if want == "integer" {
		var n int64
		return json.Unmarshal(v, &n) == nil
	}
	return kind == want
}

// kindOf is the JSON schema type of a valid JSON value.
func kindOf(v json.RawMessage) string {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return "null"
	}
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// telling are the keys whose value says best what a call is about.
var telling = []string{"command", "path", "file", "name", "pattern", "query", "url", "dir", "seconds"}

// argument is a call's input in one line: its telling value, else its first
// string, else all of it.
func argument(input json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(input, &values) != nil {
		return oneLine(string(input))
	}
	for _, key := range slices.Concat(telling, slices.Sorted(maps.Keys(values))) {
		switch v := values[key].(type) {
		case string:
			if v != "" {
				return oneLine(v)
			}
		case float64:
			return oneLine(fmt.Sprint(v))
		}
	}
	if len(values) == 0 {
		return ""
	}
	return oneLine(string(input))
}
