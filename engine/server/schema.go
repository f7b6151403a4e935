package server

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"sbx/engine"
)

// schemas are the JSON schemas of Go types, made from their json tags. Named
// structs stand once and are referred to.
type schemas struct {
	named object
}

func newSchemas() *schemas { return &schemas{named: object{}} }

// of is the schema of v's type.
func (s *schemas) of(v any) object { return s.schema(reflect.TypeOf(v)) }

var (
	textType  = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType  = reflect.TypeFor[json.Marshaler]()
	eventType = reflect.TypeFor[engine.Event]()
)

func (s *schemas) schema(t reflect.Type) object {
	switch {
	case t == eventType:
		return object{"type": "object", "description": "an event: seq, time, by, action, kind, and the body of that kind"}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(textType):
		return object{"type": "string"}
	case t.Implements(jsonType):
		return object{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.schema(t.Elem())
	case reflect.Struct:
		return s.reference(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.schema(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": s.schema(t.Elem())}
	}
	return object{"type": basic(t.Kind())}
}

func basic(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return "integer"
}

func (s *schemas) reference(t reflect.Type) object {
	if _, done := s.named[t.Name()]; !done {
		s.named[t.Name()] = nil // a type that holds itself ends here
		s.named[t.Name()] = object{"type": "object", "properties": s.properties(t)}
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}

func (s *schemas) properties(t reflect.Type) object {
	props := object{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			for k, v := range s.properties(f.Type) {
				props[k] = v
			}
		case name == "":
			props[f.Name] = s.schema(f.Type)
		default:
			props[name] = s.schema(f.Type)
		}
	}
	return props
}
