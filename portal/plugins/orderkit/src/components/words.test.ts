/* eslint-disable no-script-url */
import { ago, cut, fieldTitle, labelled, phaseOf, shown, tint, web } from './words';
import { fieldsOf, getAt, toValues, withoutPaths } from './values';

describe('words', () => {
  it('bounds texts and removes what controls', () => {
    expect(cut('a\u0000b\u202ec\u001b[31m')).toBe('a b c [31m');
    expect(cut('x'.repeat(1_000_000)).length).toBe(601);
    expect(shown({ a: 1 })).toBe('{"a":1}');
    expect(shown(null)).toBe('not set');
  });

  it('opens nothing but the web', () => {
    expect(web('https://a.example/b')).toBe('https://a.example/b');
    for (const bad of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '//a', '', null]) {
      expect(web(bad)).toBeUndefined();
    }
  });

  it('says times as people do', () => {
    const now = Date.parse('2026-11-23T12:00:00Z');
    expect(ago('2026-11-23T11:57:00Z', now)).toBe('3 minutes ago');
    expect(ago('2026-11-25T12:00:00Z', now)).toBe('in 2 days');
    expect(ago('soon', now)).toBe('soon');
  });

  it('has the words of the form for fields and choices, and no others', () => {
    const stage = { path: 'stage', parameter: 'stage', title: 'Kit', description: '', type: 'string', required: true, choices: ['stage1'], labels: { stage1: 'Stage 1' } };
    const kit = { fields: [stage] } as any;
    expect(fieldTitle('spec.stage', kit)).toBe('Kit');
    expect(labelled('stage1', 'stage', kit)).toBe('Stage 1');
    expect(labelled('toString', 'stage', kit)).toBe('toString');
    expect(labelled('stage1', 'stage', undefined)).toBe('stage1');
    expect(fieldTitle('metadata.name', kit)).toBe('metadata.name');
  });

  it('writes words in colours that can be read on a page', () => {
    expect(tint('success')).toMatch(/success-on-bg, light-dark\(#116932, #86efac\)\)$/);
    expect(tint(undefined)).toBe('inherit');
  });

  it('knows no phase by accident', () => {
    expect(phaseOf('toString').tone).toBeUndefined();
    expect(phaseOf('Ready').tone).toBe('success');
  });
});

describe('values', () => {
  const current = { budget: 5, pit: { bays: 2, lift: true } };

  it('nests entries with what stands beside them', () => {
    expect(toValues(current, { 'pit.bays': 3, budget: null })).toEqual({ pit: { bays: 3, lift: true }, budget: null });
    expect(getAt(current, 'pit.bays')).toBe(2);
    expect(getAt(current, 'constructor.name')).toBeUndefined();
    expect(withoutPaths({ 'pit.bays': 3, budget: 9 }, ['spec.pit'])).toEqual({ budget: 9 });
  });

  it('asks for the fields below a change', () => {
    const field = (path: string) => ({ path, parameter: path, title: path, description: '', type: 'string', required: false, choices: null, labels: {} });
    const fields = [field('pit.bays'), field('pit.lift'), field('pitch')];
    expect(fieldsOf(fields, ['pit']).map(each => each.path)).toEqual(['pit.bays', 'pit.lift']);
    expect(fieldsOf(fields, ['yaml'])[0].type).toBe('object');
  });
});
