// npm's jsonschema, as the scaffolder's backend asks it; ajv with ajv-errors, set up as the form sets it up.

export function judges(load) {
  const jsonschema = load('jsonschema');
  const ajv = formValidator(load);
  const compiled = new Map();

  function inForm(schema, value) {
    const key = JSON.stringify(schema);
    if (!compiled.has(key)) {
      if (compiled.size > 1000) compiled.clear();
      compiled.set(key, attempt(() => ajv.compile(JSON.parse(key))));
    }
    const check = compiled.get(key);
    return typeof check === 'function' ? attempt(() => check(value)) : check;
  }

  return (schema, value) => ({
    jsonschema: attempt(() => jsonschema.validate(value, schema).valid),
    ajv: inForm(schema, value),
  });
}

// The verdict, or {error: message} where the schema itself is refused.
function attempt(run) {
  try {
    return run();
  } catch (error) {
    return { error: String(error.message).slice(0, 300) };
  }
}

function formValidator(load) {
  const Ajv = load('ajv').default;
  const ajv = new Ajv({ allErrors: true, multipleOfPrecision: 8, strict: false, verbose: true, logger: false });
  load('ajv-formats').default(ajv);
  load('ajv-errors').default(ajv);
  return ajv;
}
