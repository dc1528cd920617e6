/* SPDX-License-Identifier: Apache-2.0
 * Beam search over many streams (docs/decoding.md): what there is, and which file does what.
 *
 * Everything is an index into a pool that belongs to the search. A function that can run out of memory or meets results
 * that cannot be gives a fault; the stream that it concerns fails with it (gh_fail) and holds nothing any more. */
#ifndef GHARIAL_SEARCH_H
#define GHARIAL_SEARCH_H

#include <stdint.h>

#include "ngram.h"
#include "pool.h"

enum { NOT_SCORED = -1 }; /* as uint32_t */
enum { MOST_WIDTH = 32, MOST_LISTED = 33, MOST_NAMED = 2, RESULT_HEAD = 16, ENTRY_BYTES = 16, NONE = -1 };

typedef enum {
    GH_FINE,
    GH_COUNT,  /* another number of classes than asked for */
    GH_CLASS,  /* a class that the model does not have, or one twice */
    GH_ORDER,  /* logits do not fall */
    GH_NAMED,  /* a named class' logit contradicts the list */
    GH_LSE,    /* the log-sum-exp cannot be that of these logits */
    GH_SLOTS,  /* no prediction slot is free, nor will be */
    GH_MEMORY, /* out of memory */
    GH_LOST,   /* the round's command failed */
    GH_NGRAM,  /* the n-gram's score is no finite number */
} gh_fault;

typedef enum { EOS_NONE, EOS_IGNORE, EOS_BLANK, EOS_PREDICT } gh_eos;
typedef enum { MODE_TOP_K, MODE_FUZZY, MODE_ALL } gh_mode;
typedef enum { KIND_NONE, KIND_TOKEN, KIND_START } gh_kind;
typedef enum { CLOSED, BETWEEN, WITHIN, FAILED } gh_stage; /* of a stream: between two steps or within one */
typedef enum { LANE_FREE, LANE_RESULTS, LANE_SCORES } gh_lane_stage;

typedef struct {
    int32_t width, max_symbols, max_expansions;
    double topk_threshold, score_threshold, final_limit; /* below 0: none */
    double blank_penalty, ngram_scale;
    int ngram; /* whether there is one */
    int merge_lone_marks;
    gh_eos eos;
    double alpha, least; /* of predict: factor, ln beta */
    int32_t classes, blank, eos_token; /* eos_token: NONE if there is none */
    int32_t temperature, logit_bits;   /* inverse, Q2.14; e */
    gh_mode mode;
    int32_t listed; /* k */
} gh_options;

/* A keyword trie with links from each node to the longest proper suffix of its text that is in the trie too. Node 0 is the root. */
typedef struct {
    int32_t nodes;
    int32_t *first;     /* nodes + 1: edges of a node */
    uint32_t *letters;  /* of an edge, ascending within a node */
    int32_t *targets;   /* of an edge */
    int32_t *suffix;    /* of a node; root: 0 */
    double *gain;       /* of the edge that leads to a node */
    double *at_risk;    /* gained on the way to a node, but for whole keywords */
} gh_trie;

/* What appending a piece does to a text's hash: text * factor + sum, modulo 2^61 - 1; twice, with different factors. */
typedef struct {
    uint64_t factor[2], sum[2];
} gh_append;

/* One cache line. Behind a word mark the piece's first word mark is left out. */
typedef struct {
    gh_append whole, behind_mark;
} gh_piece;

/* Whether appending a piece adds letters at all, and whether its last one is a word mark; the same behind a word mark. */
enum { ADDS = 1, ENDS_WITH_MARK = 2, BEHIND_MARK = 2 /* shift */ };

typedef struct {
    uint32_t holders, number; /* number: the device's */
} gh_slot;

typedef struct {
    int32_t parent, id, step;
    uint32_t holders;
    double log_p; /* when it was chosen */
    uint64_t unused; /* so that none lies in two cache lines */
} gh_token;

typedef struct {
    uint32_t holders;
    gh_ngram_state state;
    uint32_t unused[4];
} gh_context;

_Static_assert(sizeof(gh_context) == LINE && sizeof(gh_token) == LINE / 2, "items of a known size");

typedef struct {
    int32_t token, ngram; /* ngram: the state behind it, NONE if it is the hypothesis' own */
    double log_p, ngram_log_p;
} gh_candidate;

/* What a hypothesis goes on with: blank, and tokens. */
typedef struct {
    double blank; /* log p */
    int32_t count;
    gh_candidate candidates[]; /* width */
} gh_evaluation;

/* One cache line. */
typedef struct {
    double score;
    uint64_t text[2];
    int32_t next;       /* in the list it is in */
    int32_t slot;       /* prediction state; until it is asked for that before the last token, NONE for a stream's beginning */
    int32_t evaluation; /* NONE until the results are there */
    int32_t tail;       /* last token that is not final */
    int32_t first;      /* first token that is not final; held by way of the tail */
    int32_t first_id;   /* of that token */
    int32_t tokens;     /* number, final ones included */
    int32_t ngram;      /* state */
    int32_t keyword;    /* node of the longest live thread; the others are its suffixes */
    uint8_t symbols;    /* tokens of this step */
    uint8_t asked;      /* whether the slot is its own */
    uint8_t any_text, ends_with_mark;
} gh_hypothesis;

_Static_assert(sizeof(gh_hypothesis) == LINE, "a hypothesis is a cache line");

typedef struct {
    int32_t first, last;
} gh_list;

typedef struct {
    uint8_t stage, fault; /* gh_stage, gh_fault */
    uint8_t bank;
    uint8_t kept_count, wanted_count;
    uint8_t counted; /* in gh_search.counted */
    uint32_t generation; /* counts openings and closings: what is on its way for an older one is nobody's */
    int32_t encoder;
    int32_t expanded, asked, finished_count; /* in this step */
    int32_t steps, finals;
    gh_list active, finished;
    double clock;
    const gh_trie *trie;
    int32_t *prefix, prefix_length, primed; /* tokens before the first step, of which so many have been sent */
    int32_t kept[]; /* width; then as many that are wanted */
} gh_stream;

typedef struct {
    int32_t stream, hypothesis, source, destination;
    uint32_t generation;
    uint8_t joint;
} gh_entry;

typedef struct {
    int32_t stream;
    uint32_t generation;
    int32_t taken; /* slots given to it in this step, whatever it has let go of since */
} gh_member;

typedef struct {
    int32_t evaluation, candidate, from, token, to, entry;
} gh_query;

typedef struct {
    int32_t stream, fault, first, count; /* tokens: those in gh_lane.finals */
} gh_outcome;

/* A round on its way: some streams, what was asked of the device for them, and what came of it. */
typedef struct {
    gh_lane_stage stage;
    gh_member *members;
    gh_entry *entries;
    gh_query *queries;
    gh_outcome *outcomes;
    gh_token *finals;
    int32_t member_count, entry_count, query_count, outcome_count, final_count, final_room;
} gh_lane;

typedef struct {
    gh_options options;
    double scale;    /* of a logit */
    double most_lse; /* log-sum-exp above the largest logit, ln of the classes */
    gh_piece *pieces;       /* by class, as the three that follow */
    uint8_t *piece_flags;
    uint32_t *words;        /* in the n-gram; NOT_SCORED */
    uint32_t *letters_at;   /* where its letters begin in `letters`, and the next one's */
    uint32_t *letters;
    void *memory; /* what all of it lies in but the letters, tokens of lanes, and pools that have grown */
    char *streams;
    size_t stream_bytes; /* of each */
    gh_lane *lanes;
    uint32_t grown;      /* how often a lane's tokens have been given more room */
    int32_t stream_count, lane_count, most_entries;
    int32_t counted; /* streams that have begun a step: each may keep `width` slots at the end of its next one */
    int32_t taken;   /* of all members of all lanes */
    gh_pool slots, hypotheses, evaluations, tokens, ngrams;
    const gh_ngram *ngram; /* what scores here; NULL: somebody else does, or there is no n-gram */
} gh_search;

/* streams.c: life of a search and its streams. */
gh_search *gh_search_new(const gh_options *options, int32_t streams, int32_t lanes, int32_t most_entries, const int32_t *slots,
                         int32_t slot_count, const gh_ngram *ngram);
void gh_search_free(gh_search *search);
gh_fault gh_open(gh_search *search, int32_t stream, const gh_trie *trie, const int32_t *prefix, int32_t prefix_length);
void gh_close(gh_search *search, int32_t stream);
void gh_fail(gh_search *search, int32_t stream, gh_fault fault);

/* hypotheses.c: lists of them, and what they hold. */
void gh_release(gh_search *search, gh_hypothesis *one);
void gh_discard(gh_search *search, int32_t hypothesis);
void gh_discard_list(gh_search *search, gh_list *list);
void gh_append_to(gh_search *search, gh_list *list, int32_t hypothesis);
void gh_drop_tokens(gh_search *search, int32_t tail);
void gh_drop_evaluation(gh_search *search, int32_t evaluation);
double gh_log_add(double a, double b);
static inline gh_hypothesis *gh_at(const gh_search *search, int32_t hypothesis)
{
    return (gh_hypothesis *)(void *)search->hypotheses.items + hypothesis;
}
static inline gh_evaluation *gh_evaluation_at(const gh_search *search, int32_t evaluation)
{
    return gh_pool_at(&search->evaluations, evaluation);
}
static inline gh_ngram_state *gh_state_at(const gh_search *search, int32_t state)
{
    return &((gh_context *)(void *)search->ngrams.items)[state].state;
}
static inline gh_stream *gh_stream_at(const gh_search *search, int32_t stream)
{
    return (gh_stream *)(void *)(search->streams + (size_t)stream * search->stream_bytes);
}
static inline int gh_present(const gh_search *search, uint32_t generation, int32_t stream)
{
    const gh_stream *one = gh_stream_at(search, stream);
    return one->generation == generation && one->stage == WITHIN;
}
static inline uint32_t gh_slot_number(const gh_search *search, int32_t slot)
{
    return ((const gh_slot *)(void *)search->slots.items)[slot].number;
}
static inline int32_t gh_hold_slot(const gh_search *search, int32_t slot)
{
    ((gh_slot *)(void *)search->slots.items)[slot].holders++;
    return slot;
}
static inline void gh_drop_slot(gh_search *search, int32_t slot)
{
    if (!--((gh_slot *)(void *)search->slots.items)[slot].holders)
        gh_pool_free(&search->slots, slot);
}
static inline int32_t *gh_wanted(const gh_search *search, gh_stream *stream)
{
    return stream->kept + search->options.width;
}
static inline gh_token *gh_token_at(const gh_search *search, int32_t token)
{
    return (gh_token *)(void *)search->tokens.items + token;
}

/* text.c: pieces and keywords. */
int gh_set_pieces(gh_search *search, const uint32_t *letters, const int32_t *ends, const uint8_t *scored, const uint32_t *words);
void gh_extend_text(const gh_search *search, gh_hypothesis *one, int32_t token);
double gh_extend_keywords(const gh_search *search, const gh_trie *trie, int32_t *node, int32_t token);
void gh_trie_free(gh_trie *trie);

/* results.c: from the device's bytes to candidates. */
gh_fault gh_read(const gh_search *search, const uint8_t *result, int only_blank, gh_evaluation *evaluation);
int32_t gh_result_bytes(const gh_options *options);

/* step.c: the step as far as the results go. 1: it is done; 0: it wants results; -1: the fault is set. */
int gh_step(gh_search *search, gh_stream *stream, gh_fault *fault);

/* finals.c: what a step leaves. New finals go to the lane. */
gh_fault gh_end_step(gh_search *search, gh_stream *stream, gh_lane *lane, gh_outcome *outcome);
void gh_by_mean(const gh_search *search, int32_t *those, int32_t count);
static inline double gh_mean(const gh_hypothesis *one)
{
    return one->score / (one->tokens + 1);
}

/* rounds.c: entries out. */
/* Streams are far away after a round of many others: what is needed first of all of a batch is asked for at once. */
void gh_fetch(const gh_search *search, const int32_t *streams, int32_t count);
void gh_begin(gh_search *search, int32_t lane, const int32_t *streams, const int32_t *encoders, const int32_t *banks, int32_t count);
/* begun: whether this follows gh_begin, and no results have come yet. */
int32_t gh_ask(gh_search *search, int32_t lane, uint8_t *entries, int begun);
void gh_cancel(gh_search *search, int32_t lane);

/* feed.c: results in. Queries are open after it where the n-gram is not the search's own. */
void gh_feed(gh_search *search, int32_t lane, const uint8_t *results, int32_t stride);
void gh_let_go(gh_search *search, const gh_lane *lane);

#endif
