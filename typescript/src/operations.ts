// The requests of the API as types: what each takes and returns, from the generated `paths`.
import type { paths } from "./api.js";

type Verb = "get" | "put" | "post" | "patch" | "delete";

type VerbOf<P extends keyof paths> = {
  [V in Verb]: paths[P][V] extends { responses: unknown } ? V : never;
}[Verb];

/** The methods of a path. */
export type MethodOf<P extends keyof paths> = Uppercase<VerbOf<P>>;

type Operation<P extends keyof paths, M extends string> = paths[P][Lowercase<M> & keyof paths[P]];

/** A field that may be left out if the value may be undefined, and must be if there is none. */
type Field<K extends string, V> = [V] extends [never]
  ? unknown
  : [V] extends [undefined]
    ? unknown
    : undefined extends V
      ? { [key in K]?: V }
      : { [key in K]: V };

type Parameter<O, K extends string> = O extends { parameters: { [key in K]?: infer V } } ? V : never;

type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } }
  ? B
  : O extends { requestBody?: { content: { "application/json": infer B } } }
    ? B | undefined
    : never;

/** What a request takes. */
export type Call<P extends keyof paths, M extends string> = Field<"path", Parameter<Operation<P, M>, "path">> &
  Field<"query", Parameter<Operation<P, M>, "query"> | undefined> &
  Field<"body", Body<Operation<P, M>>>;

type ContentOf<R> = R extends { content: infer C } ? ([C] extends [never] ? undefined : C[keyof C]) : undefined;

/** What the response contains. */
export type Content<P extends keyof paths, M extends string> = Operation<P, M> extends { responses: infer R }
  ? { [S in keyof R]: ContentOf<R[S]> }[keyof R]
  : never;
